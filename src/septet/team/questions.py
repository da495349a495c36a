"""The questions that a team asks the person, and the events that the person's answers become. Pure."""

from typing import Literal

import msgspec

from septet.common.values import Value
from septet.domain.approvals import accepts, action_digest, approves, newest_tree, turn_action
from septet.domain.events import (
    Event,
    FactsChanged,
    PackagesDecided,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    ReviewGiven,
    StepGranted,
    StopRequested,
    ToolAnswered,
    ToolCalled,
    WorkAccepted,
)
from septet.domain.facts import change_in, without_facts
from septet.domain.packages import wanted_words
from septet.domain.plans import Plan, parse_plan, plan_digest, plan_text
from septet.domain.state import State
from septet.errors import NeedsPerson

CONTINUE_WORDS = {"c", "continue"}
SKIP_WORDS = {"s", "skip"}
STOP_WORDS = {"q", "quit", "stop"}
REFUSAL_WORDS = {"n", "no", "never", "don't"}


class Question(Value):
    """A question of the team to the person."""

    kind: Literal["plan", "step", "review", "packages", "ask"]
    text: str
    call: str = ""
    """The call that the person's words answer, where a member asks by a tool."""
    action: str = ""
    """The digest of exactly what is asked: tool, arguments and version. An answer to another action is refused."""
    can_skip: bool = False
    """Whether the next step can be left out."""
    files: tuple[str, ...] = ()
    """Files that the person may edit before the next step."""
    note: str = ""
    """What is good to know before the answer: for a plan, what the work will cost about."""


def question(state: State) -> Question | None:
    """The question that is open now; None if the team can go on without an answer."""
    if (call := open_ask(state)) is not None:
        action = action_digest(ASK, f"{call.id} {call.arguments}", newest_tree(state))
        return Question(
            kind="ask", text=f"the {call.by} asks: {asked_text(call)}", call=call.id, action=action
        )
    if state.team.packages == "ask" and (asked := state.work.provisions.to_ask):
        action = action_digest("install", " ".join(sorted(asked.names)), newest_tree(state))
        return Question(kind="packages", text=f"install {wanted_words(asked)}?", action=action)
    if state.plan.current is not None and not state.plan.approved:
        return None if state.talk.remarks else plan_question(state, state.plan.current)
    if state.team.stepwise and state.floor.granted_steps <= sum(
        state.floor.turn_counts.values()
    ) - state.floor.turn_counts.get(state.team.person, 0):
        return step_question(state)
    turn = state.floor.turn
    if (
        state.work.version is not None
        and turn is not None
        and turn.speaker == state.team.person
        and not turn.closed
    ):
        return Question(kind="review", text=program_location(state), action=turn_action(state))
    return None


def plan_question(state: State, plan: Plan) -> Question:
    action = action_digest("plan", plan_digest(plan), newest_tree(state))
    return Question(kind="plan", text=plan_text(plan), action=action, note=cost_estimate(state))


USUAL_ANSWERS = (4, 15)
"""How many answers of models a small program takes, from the plan to its end (docs/cost.md)."""


def cost_estimate(state: State) -> str:
    """What a small program costs at the price of the answers so far; empty where nothing is known to cost anything."""
    spent = state.spending.total
    if not spent.answers or not spent.cost:
        return ""
    low, high = (spent.cost / spent.answers * max(count, spent.answers + 1) for count in USUAL_ANSWERS)
    limit = f", at most ${state.budget.cost:g}" if state.budget.cost is not None else ""
    usual = f"{USUAL_ANSWERS[0]} to {USUAL_ANSWERS[1]} answers"
    return f"cost so far ${spent.cost:.4f}; a small program takes {usual}, about ${low:.2f} to ${high:.2f}{limit}"


SHORT_ACTION = 12
"""So many characters of an action's digest are enough to name it."""


def check_action(state: State, action: str) -> None:
    """Raise NeedsPerson if an action is named and the team asks not exactly about it now."""
    if not action:
        return
    asked = question(state)
    if asked is None:
        raise NeedsPerson("the team asks nothing now", "look at what it has done")
    if len(action) < SHORT_ACTION or not asked.action.startswith(action):
        raise NeedsPerson(
            "the team asks something else by now", "look at the newest question, and answer that"
        )


WORK_OF_ROLES = {
    "planner": "writes the plan",
    "coder": "writes version {after}",
    "runner": "runs and tests version {now}",
    "reviewer": "reviews version {now}",
    "exemplar": "looks for an example",
    "manager": "decides what to do next",
}


def step_question(state: State) -> Question:
    """Name the step that comes next, if the turn of the person says it."""
    name = state.floor.turn.next if state.floor.turn else ""
    if not name:
        return Question(kind="step", text="take one more step?", action=turn_action(state))
    member = state.team.member(name)
    role = member.role if member else name
    count = len(state.work.versions)
    work = WORK_OF_ROLES.get(role, "speaks").format(now=f"v{count}", after=f"v{count + 1}")
    in_place = state.base is None and state.work.version is not None
    paths = [file.path for file in state.work.version.files] if in_place and state.work.version else []
    return Question(
        kind="step",
        text=f"next: the {name} {work}",
        action=turn_action(state),
        can_skip=role == "reviewer" and state.work.version is not None,
        files=tuple(f"{state.workspace}/{path}" for path in paths),
    )


def skipped_review(state: State) -> ReviewGiven:
    """The person's review without findings, instead of the reviewer's: the evidence alone decides."""
    version = state.work.version
    assert version is not None, "only a version can be reviewed"
    items = state.plan.current.items if state.plan.current else ()
    found = state.work.evidence
    passed = bool(items) and all(item.id in found and found[item.id].passed for item in items)
    return ReviewGiven(
        version=version.number, tree=version.tree, verdict="accept" if passed else "revise", green=passed
    )


ASK = "ask"
"""The tool by which a member asks the person."""
NO_ANSWER = "Nobody answers: decide by the goal and the plan, and say at the end what you have assumed."


class AskArguments(Value):
    question: str = ""


def open_ask(state: State) -> ToolCalled | None:
    """The call of the turn that waits for the person's words."""
    turn = state.floor.turn
    calls = turn.calls if turn is not None and not turn.closed else ()
    return next((call for call in calls if call.name == ASK and call.id not in state.talk.tool_results), None)


def asked_text(call: ToolCalled) -> str:
    try:
        return msgspec.json.decode(call.arguments, type=AskArguments).question.strip()
    except msgspec.MsgspecError:
        return ""


def ask_answer(asked: Question, text: str) -> ToolAnswered:
    """The person's words as what the tool answers; none are an answer, too."""
    words = text.strip()
    return ToolAnswered(
        id=asked.call, text=words or NO_ANSWER, summary=f"{asked.text} → {words or 'no answer'}"
    )


def program_location(state: State) -> str:
    """Say where the program is, or which commands show it if the team works in a copy of the person's folder."""
    if state.base is None or state.base.deliveries:
        return f"the program is in {state.workspace}"
    return f"septet try {state.chat} runs the program, septet diff {state.chat} shows what it changes"


def read_answer(state: State, asked: Question | None, text: str) -> tuple[Event, ...]:
    """Turn the person's message into events: facts to remember, and an answer or a remark."""
    change, rest = change_in(text), without_facts(text)
    facts = (FactsChanged(by="person", change=change),) if change else ()
    if facts and not rest:
        return facts
    return (*facts, answer_event(state, asked, rest) if asked else PersonSpoke(text=rest))


def answer_event(state: State, asked: Question, text: str) -> Event:
    """Turn an answer into an approval, a granted step, a stop, a plan by the person, or a message to the team."""
    words = text.strip().lower().rstrip(".!")
    if words in STOP_WORDS:
        return StopRequested()
    if asked.kind == "ask":
        return ask_answer(asked, text)
    if asked.can_skip and words in SKIP_WORDS:
        return skipped_review(state)
    if asked.kind == "packages" and (approves(text) or words in {*REFUSAL_WORDS, "always"}):
        names = tuple(sorted(state.work.provisions.to_ask.names))
        return PackagesDecided(names=names, allowed=words not in REFUSAL_WORDS, always=words == "always")
    if asked.kind == "plan" and approves(text) and state.plan.current is not None:
        return PlanApproved(plan=plan_digest(state.plan.current))
    if asked.kind == "review" and accepts(text):
        return WorkAccepted(tree=state.work.version.tree if state.work.version else "")
    if asked.kind != "plan" and (approves(text) or words in {*CONTINUE_WORDS, "step"}):
        return StepGranted(freely=asked.kind == "step" and words in CONTINUE_WORDS, action=asked.action)
    plan = parse_plan(text) if asked.kind == "plan" and "check:" in text else None
    return PlanProposed(plan=plan, by="person") if isinstance(plan, Plan) else PersonSpoke(text=text.strip())
