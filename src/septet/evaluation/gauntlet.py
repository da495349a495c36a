"""The gauntlet: scripted teams that misbehave in every known way, driven by the real engine, and how each one ends."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import anyio
import msgspec
from msgspec.structs import replace

from septet.chat.audit import FAILURE_MODES, FailureMode, audit_log
from septet.common.documents import read_document
from septet.common.values import Value
from septet.domain.events import PersonSpoke, PlanApproved, Recorded, VersionWritten
from septet.domain.plans import Plan, parse_plan, plan_digest
from septet.domain.reduce import fold
from septet.domain.teams import Budget, EndReason
from septet.errors import BadConfig, SeptetError
from septet.ports import Sandbox
from septet.ways.endings import ending
from septet.ways.table import TEAMS
from septet.wiring.session import Session, with_model

SCENARIOS = Path(__file__).parent / "gauntlet.yaml"
AGAIN = 24
"""How often a role says its last words once more."""
OVER = ("verdict: accept", "terminate:")
"""What ends a plain round robin: the word of one member."""


class ScriptTurn(Value, forbid_unknown_fields=True):
    role: str
    say: str
    files: Mapping[str, str] = {}


class Scenario(Value, forbid_unknown_fields=True):
    """A team that misbehaves: what its members say, and the ends that are right for it."""

    mode: FailureMode | Literal["impossible"]
    name: str
    ends: tuple[EndReason, ...]
    turns: tuple[ScriptTurn, ...]
    rounds: int = 2
    team: str = "iterate"
    plan: str = ""
    by: Literal["planner", "person"] = "planner"
    wish: str = ""
    right: bool = False


class Suite(Value, forbid_unknown_fields=True):
    goal: str
    plan: str
    texts: Mapping[str, str]
    scenarios: tuple[Scenario, ...]


class ScenarioOutcome(Value, omit_defaults=False):
    """How a scenario ended, and what the log and a plain round robin say of it."""

    scenario: Scenario
    end: str
    detail: str
    named: bool
    """Whether the audit of the log names the mode."""
    rounds: int
    plain: str

    @property
    def held(self) -> bool:
        """The end is right, and the mode is named."""
        return self.end in self.scenario.ends and self.named


def load_suite() -> Suite:
    """The scenarios, with the texts that they name in their places."""
    suite = read_document(SCENARIOS, Suite)
    return replace(suite, scenarios=tuple(filled(one, suite.texts) for one in suite.scenarios))


def filled(scenario: Scenario, texts: Mapping[str, str]) -> Scenario:
    def text(name: str) -> str:
        return texts[name[1:]] if name.startswith("@") else name

    turns = [
        replace(turn, files={path: text(name) for path, name in turn.files.items()})
        for turn in scenario.turns
    ]
    return replace(scenario, plan=text(scenario.plan), turns=tuple(turns))


def scenario_script(suite: Suite, scenario: Scenario) -> dict[str, object]:
    """The words of all members; who is not in the scenario says what an obedient member says."""
    turns = list(scenario.turns)
    roles = {turn.role for turn in turns}
    plan = scenario.plan or suite.plan
    usual = [ScriptTurn(role="planner", say=plan), ScriptTurn(role="reviewer", say="verdict: accept\n")]
    missing = [turn for turn in usual if turn.role not in roles and scenario.team == "iterate"]
    turns = [*missing, *turns]
    words: list[dict[str, object]] = []
    for role in dict.fromkeys(turn.role for turn in turns):
        own = [turn for turn in turns if turn.role == role]
        words += [msgspec.to_builtins(turn) for turn in [*own, *[own[-1]] * AGAIN]]
    return {"turns": words}


async def run_scenario(
    session: Session, sandbox: Sandbox, suite: Suite, scenario: Scenario, folder: Path
) -> ScenarioOutcome:
    """The scenario as a chat of its own, to its end."""
    script = anyio.Path(folder / "script.json")
    await script.parent.mkdir(parents=True)
    await script.write_bytes(msgspec.json.encode(scenario_script(suite, scenario)))
    budget = Budget(rounds=scenario.rounds)
    team = replace(TEAMS[scenario.team], approve="auto", budget=budget, keepsakes=())
    chat = await session.start(suite.goal, with_model(team, f"scripted:{script}"), folder / "work")
    if scenario.by == "person":
        await approve(session, chat, scenario.plan or suite.plan)
    said = False
    try:
        async for recorded in session.perform(chat, sandbox):
            if scenario.wish and not said and isinstance(recorded.event, VersionWritten):
                said = True
                await session.append(chat, PersonSpoke(text=scenario.wish))
    except SeptetError as error:
        return await scenario_outcome(session, chat, suite, scenario, failure=str(error))
    return await scenario_outcome(session, chat, suite, scenario)


async def approve(session: Session, chat: str, text: str) -> None:
    """The person's own plan."""
    plan = parse_plan(text)
    if not isinstance(plan, Plan):
        raise BadConfig(plan.reason)
    await session.propose(chat, plan)
    await session.append(chat, PlanApproved(plan=plan_digest(plan)))


async def scenario_outcome(
    session: Session, chat: str, suite: Suite, scenario: Scenario, failure: str = ""
) -> ScenarioOutcome:
    log = await session.log(chat)
    state = fold(log)
    ended = ending(state)
    return ScenarioOutcome(
        scenario=scenario,
        end=ended.reason if ended else "unfinished",
        detail=ended.detail if ended else failure,
        named=is_detected(scenario, log),
        rounds=state.floor.turn_counts.get("coder", 0),
        plain=plain_end(suite, scenario),
    )


def is_detected(scenario: Scenario, log: Sequence[Recorded]) -> bool:
    """What nobody can do has no mode: the way out, or the check that fails, is what there is to see."""
    return scenario.mode == "impossible" or any(one.mode == scenario.mode for one in audit_log(log))


def plain_end(suite: Suite, scenario: Scenario) -> str:
    """The same words in a plain round robin, which a member's word ends and nothing is checked in."""
    words = scenario_script(suite, scenario)["turns"]
    turns = msgspec.convert(words, list[ScriptTurn])
    roles = list(dict.fromkeys(turn.role for turn in turns))
    for number in range(scenario.rounds):
        for role in roles:
            own = [turn for turn in turns if turn.role == role]
            if any(word in own[min(number, len(own) - 1)].say.lower() for word in OVER):
                return "done"
    return "rounds over"


async def run_gauntlet(
    session: Session, sandbox: Sandbox, folder: Path, suite: Suite, jobs: int = 1
) -> list[ScenarioOutcome]:
    outcomes: dict[int, ScenarioOutcome] = {}
    limit = anyio.CapacityLimiter(jobs)

    async def one(number: int, scenario: Scenario) -> None:
        async with limit:
            outcomes[number] = await run_scenario(session, sandbox, suite, scenario, folder / str(number))

    async with anyio.create_task_group() as tasks:
        for number, scenario in enumerate(suite.scenarios):
            tasks.start_soon(one, number, scenario)
    return [outcomes[number] for number in sorted(outcomes)]


def gauntlet_table(outcomes: Sequence[ScenarioOutcome]) -> str:
    """A line for each team, then the sums."""
    rows = [
        f"{'✓' if one.held else '✗'} {one.scenario.mode:<10} {one.scenario.name:<52} {one.end:<12} {one.plain}"
        for one in outcomes
    ]
    wrong = [one for one in outcomes if one.end == "done" and not one.scenario.right]
    plain = [one for one in outcomes if one.plain == "done" and not one.scenario.right]
    known = len({one.scenario.mode for one in outcomes} & set(FAILURE_MODES))
    head = f"  {'mode':<10} {'what the team does':<52} {'here':<12} plain round robin"
    held = f"{sum(one.held for one in outcomes)} of {len(outcomes)} held, {known} modes"
    done = f"wrongly done: {len(wrong)} here, {len(plain)} in a plain round robin"
    return "\n".join([head, *rows, f"{held}; {done}"])
