"""Teams that misbehave in every known way end as they should, and each guard is needed for one of them at least."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from septet.chat.audit import FAILURE_MODES
from septet.evaluation.gauntlet import Scenario, ScenarioOutcome, gauntlet_table, load_suite, run_scenario
from septet.settings.home import Home
from septet.wiring.session import Session, open_session

pytestmark = pytest.mark.anyio
SUITE = load_suite()
BY_NAME = {one.name: one for one in SUITE.scenarios}
SAMPLE = 7
"""One in so many is run in every run of the tests, the others in `just torture`."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Session]:
    folder = tmp_path_factory.mktemp("gauntlet")
    home = Home(data=folder / "home", config=folder / "config", cache=folder / "cache")
    async with open_session(home) as opened:
        yield opened


async def outcome(session: Session, scenario: Scenario, folder: Path) -> ScenarioOutcome:
    return await run_scenario(session, await session.sandbox(), SUITE, scenario, folder / "team")


def sampled() -> list[object]:
    rest = (pytest.mark.torture,)
    return [
        pytest.param(one.name, marks=rest if number % SAMPLE else ())
        for number, one in enumerate(SUITE.scenarios)
    ]


@pytest.mark.parametrize("name", sampled())
async def test_a_team_that_misbehaves_ends_as_it_should(session: Session, tmp_path: Path, name: str) -> None:
    found = await outcome(session, BY_NAME[name], tmp_path)
    assert found.end in found.scenario.ends, found.detail
    assert found.named, "the audit of the log names the mode"
    bound = found.scenario.rounds + 2  # replies that could not be used are no rounds
    assert found.rounds <= bound


def test_each_of_the_fourteen_modes_has_three_teams_and_done_is_right_only_where_the_program_is() -> None:
    counts = Counter(one.mode for one in SUITE.scenarios)
    assert all(counts[mode] >= 3 for mode in FAILURE_MODES)
    assert len(SUITE.scenarios) >= 42
    assert len(BY_NAME) == len(SUITE.scenarios)
    assert [one.name for one in SUITE.scenarios if "done" in one.ends and not one.right] == []


def test_the_table_counts_what_was_wrongly_done() -> None:
    one = BY_NAME["tests that assert nothing"]
    held = ScenarioOutcome(scenario=one, end="bound", detail="", named=True, rounds=2, plain="done")
    lost = replace(held, end="done")
    table = gauntlet_table([held, lost])
    assert table.splitlines()[1].startswith("✓ 3.2")
    assert table.splitlines()[2].startswith("✗ 3.2")
    assert table.splitlines()[-1] == "1 of 2 held, 1 modes; wrongly done: 1 here, 2 in a plain round robin"


def nothing(*_: object, **__: object) -> list[str]:
    return []


def no_refusal(*_: object, **__: object) -> None:
    return None


def reviewers_word(_state: object, read: "object") -> tuple[object, str]:
    return getattr(read, "verdict"), ""  # noqa: B009  # whatever it read


def as_it_is(_times: int, floor: object) -> object:
    return floor


def no_traces(_state: object) -> dict[str, str]:
    return {}


DOUBTS = ("septet.team.evidence.doubts", "septet.agents.checks.doubts")
CONTROLS = ("septet.agents.checks.control_doubts",)
REPLIES, POLICY = "septet.ways.iterate.replies", "septet.ways.iterate.policy"
GUARDS: dict[str, tuple[tuple[str, ...], Callable[..., object], str]] = {
    "red evidence overrules": (
        (f"{REPLIES}.judge_review",),
        reviewers_word,
        "the reviewer accepts over failing tests",
    ),
    "hollow program": ((*DOUBTS, *CONTROLS), nothing, "tests that assert nothing"),
    "mutants": (CONTROLS, nothing, "a test that looks at the type only"),
    "approved checks stay": (
        (f"{REPLIES}.amendment_refusal",),
        no_refusal,
        "the planner would change what the person wrote",
    ),
    "challenges are read": ((f"{REPLIES}.read_challenge",), no_refusal, "a planner who insists"),
    "repeated states": ((f"{POLICY}.unless_stuck",), as_it_is, "the same code again and again"),
    "never pleased": ((f"{POLICY}.unless_never_pleased",), as_it_is, "a reviewer who is never pleased"),
    "fresh checks": (("septet.agents.run_context.traces_of",), no_traces, "calls are counted in a file"),
    "runs before the end": (
        ("septet.ways.pair.members.ran_well",),
        bool,
        "the manager ends it before anything ran",
    ),
}


@pytest.mark.torture
@pytest.mark.parametrize("guard", GUARDS)
async def test_without_a_guard_a_team_gets_away_with_it(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    places, instead, name = GUARDS[guard]
    for place in places:
        monkeypatch.setattr(place, instead)
    found = await outcome(session, BY_NAME[name], tmp_path)
    assert not found.held, f"{guard} makes no difference: {found.end} ({found.detail})"
