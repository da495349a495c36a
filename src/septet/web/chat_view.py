"""What the page shows of chats, computed here from their states: the page only renders it."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from septet.chat.export import base_text, challenge_words, package_text
from septet.chat.index_file import IndexFile
from septet.chat.names import CHAT_NAME, chat_title
from septet.chat.progress import evidence_text, is_told_by_evidence
from septet.chat.results import (
    RunOutcome,
    author_text,
    ending_text,
    open_question,
    run_outcome,
    run_title,
    speaks_for_person,
    status,
)
from septet.chat.summaries import Phase, Summaries, Summary, phase
from septet.common.values import Value
from septet.domain.events import (
    BaseMoved,
    BaseSurveyed,
    ChallengeDecided,
    ChatEnded,
    CheckChallenged,
    Delivered,
    DeliveryStarted,
    Event,
    EvidenceFound,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    PlanProposed,
    Recorded,
    RunFinished,
    RunStarted,
)
from septet.domain.messages import Usage
from septet.domain.plans import Judged, check_text, plan_digest, plan_text
from septet.domain.state import Spending, State
from septet.domain.teams import Allowance, EndReason, TeamSpec
from septet.ports import EventStore
from septet.protocols.http import NotFound
from septet.team.budgets import allowance, own_spending, whole_allowance
from septet.team.evidence import EvidenceLine, earlier_outcome, evidence_report
from septet.team.questions import Question
from septet.ways.endings import FINISHED, ending
from septet.ways.table import rounds_used

MAX_GOAL_LENGTH = 300
LISTED = 200
"""The chats of the page's list, the newest; the search finds the older ones."""


class ChatCache:
    """The states and summaries of chats, by names that come from outside."""

    def __init__(self, store: EventStore, index: IndexFile | None = None) -> None:
        self._summaries = Summaries(store, index)

    async def state(self, chat: str) -> State:
        """Return the newest state of a chat. Raises NotFound if there is no such chat."""
        if not CHAT_NAME.fullmatch(chat):
            raise NotFound(f"there is no chat '{chat[:80]}'")
        state = await self._summaries.state(chat)
        if state.seq == 0:
            raise NotFound(f"there is no chat '{chat}'", "see the list")
        return state

    async def summaries(self) -> list[Summary]:
        """The newest chats, most recently changed first."""
        newest = await self._summaries.newest(LISTED)
        return [with_short_goal(one) for one in newest if CHAT_NAME.fullmatch(one.chat)]


def with_short_goal(summary: Summary) -> Summary:
    short = len(summary.goal) <= MAX_GOAL_LENGTH
    return summary if short else replace(summary, goal=summary.goal[:MAX_GOAL_LENGTH])


class MemberView(Value, omit_defaults=False):
    """A member as people see it; `title` is its display name."""

    name: str
    title: str
    role: str


class RequirementView(Value, omit_defaults=False):
    """A requirement or a wish, its check, and whether the newest version meets it (None: not checked yet)."""

    id: str
    text: str
    check: str
    met: bool | None
    evidence: str
    author: str = ""
    """Who wrote what shows it."""
    earlier: bool | None = None
    """While `met` is unknown: whether an older version met it, as far as that was checked."""


class PlanView(Value, omit_defaults=False):
    """The newest plan. The person edits `text`; an approval refers to `digest`."""

    text: str
    digest: str
    run: str
    approved: bool
    requirements: tuple[RequirementView, ...]
    wishes: tuple[RequirementView, ...]


class BudgetView(Value, omit_defaults=False):
    """How much of a limit is used: the chat's or a member's."""

    owner: str
    unit: Literal["tokens", "dollars", "seconds"]
    used: float
    limit: float


class ChatView(Value, omit_defaults=False):
    """One chat at sequence number `seq`: everything the page needs to show it.

    `label` is its state in a word or two, `ending` the sentence that says how it ended.
    """

    seq: int
    title: str
    """The goal in a few words."""
    team: str
    members: tuple[MemberView, ...]
    person: str
    """The member whose turns are the person's; empty if a model speaks for the person."""
    plans: bool
    """Whether this team writes a plan first."""
    phase: Phase
    label: str
    status: str
    ending: RunOutcome | None
    question: Question | None
    rounds: int
    round_limit: int | None
    plan: PlanView | None
    usage: Usage
    cost: float
    cost_limit: float | None
    budgets: tuple[BudgetView, ...]


def chat_view(state: State) -> ChatView:
    return ChatView(
        seq=state.seq,
        title=chat_title(state.goal),
        team=state.team.name,
        members=members(state.team),
        person=state.team.person if speaks_for_person(state.team, state.team.person) else "",
        plans=state.team.member("planner") is not None,
        phase=phase(state),
        label=label(state),
        status=status(state),
        ending=ending_view(state),
        question=question_view(state),
        rounds=rounds_used(state),
        round_limit=state.budget.rounds,
        plan=plan_view(state),
        usage=state.spending.total.usage,
        cost=state.spending.total.cost,
        cost_limit=state.budget.cost,
        budgets=tuple(budgets(state)),
    )


def members(team: TeamSpec) -> tuple[MemberView, ...]:
    return tuple(
        MemberView(
            name=member.name,
            title="you" if speaks_for_person(team, member.name) else member.title or member.name,
            role="person" if speaks_for_person(team, member.name) else member.role,
        )
        for member in team.members
    )


def title_of(team: TeamSpec, name: str) -> str:
    return next((member.title for member in members(team) if member.name == name), name)


SHORT_ENDINGS: dict[EndReason, str] = {
    "claimed": "not proven",
    "challenged": "check challenged",
    "no_progress": "no progress",
    "rounds": "rounds over",
}


def label(state: State) -> str:
    if (ended := ending(state)) is not None:
        return SHORT_ENDINGS.get(ended.reason, ended.reason)
    if state.floor.turn is None:
        return "starting"
    waits = speaks_for_person(state.team, state.floor.turn.speaker)
    return "waits for you" if waits else title_of(state.team, state.floor.turn.speaker)


def ending_view(state: State) -> RunOutcome | None:
    if (ended := ending(state)) is None:
        return None
    return RunOutcome(text=capitalised(ending_text(state, ended)), good=ended.reason in FINISHED)


def question_view(state: State) -> Question | None:
    asked = open_question(state)
    return replace(asked, text=capitalised(asked.text), note=capitalised(asked.note)) if asked else None


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def plan_view(state: State) -> PlanView | None:
    if state.plan.current is None:
        return None
    lines = [requirement_view(state, line) for line in evidence_report(state)]
    planned = len(state.plan.current.items)
    return PlanView(
        text=plan_text(state.plan.current),
        digest=plan_digest(state.plan.current),
        run=state.plan.current.run,
        approved=state.plan.approved,
        requirements=tuple(lines[:planned]),
        wishes=tuple(lines[planned:]),
    )


def requirement_view(state: State, line: EvidenceLine) -> RequirementView:
    item = line.item
    judged = isinstance(item.check, Judged)
    is_open_wish = any(wish.id == item.id and not wish.version for wish in state.plan.wishes)
    is_checked = is_open_wish or (state.work.review is not None if judged else item.id in state.work.evidence)
    return RequirementView(
        id=item.id,
        text=item.text,
        check=check_text(item.check),
        met=line.is_met if is_checked else None,
        evidence=line.detail if is_checked else "",
        author=author_text(line),
        earlier=None if is_checked else earlier_outcome(state, item.id),
    )


def budgets(state: State) -> Iterator[BudgetView]:
    """Yield every limit that is set, the chat's first."""
    whole = Spending(
        usage=state.spending.total.usage, cost=state.spending.total.cost, seconds=state.spending.seconds
    )
    yield from budget_views("the chat", whole_allowance(state.budget), whole)
    for member in state.team.members:
        used = own_spending(state, member.name)
        yield from budget_views(title_of(state.team, member.name), allowance(state, member.name), used)


def budget_views(owner: str, limits: Allowance, used: Spending) -> Iterator[BudgetView]:
    if limits.tokens is not None:
        yield BudgetView(owner=owner, unit="tokens", used=used.usage.total, limit=limits.tokens)
    if limits.cost is not None:
        yield BudgetView(owner=owner, unit="dollars", used=used.cost, limit=limits.cost)
    if limits.seconds is not None:
        yield BudgetView(owner=owner, unit="seconds", used=used.seconds, limit=limits.seconds)


class EventText(Value):
    """Display text for an event: what was run and its outcome, the checks of a plan, or a sentence.

    `in_evidence` marks a run of which the evidence says all that there is to say.
    """

    outcome: RunOutcome | None = None
    checks: tuple[str, ...] = ()
    text: str = ""
    in_evidence: bool = False


def event_text_for_page(event: Event) -> EventText | None:
    match event:
        case RunStarted() | RunFinished() | EvidenceFound():
            return run_text(event)
        case PlanProposed(plan=plan):
            return EventText(checks=tuple(check_text(item.check) for item in plan.items))
        case PackagesWanted() | PackagesDecided() | PackagesInstalled():
            return EventText(text=capitalised(package_text(event)[1]))
        case BaseSurveyed() | BaseMoved() | DeliveryStarted() | Delivered():
            return EventText(text=capitalised(base_text(event)[1]))
        case CheckChallenged() | ChallengeDecided():
            return EventText(text=capitalised(challenge_words(event)))
        case ChatEnded(reason=reason, by=by):
            words = SHORT_ENDINGS.get(reason, reason)
            return EventText(text=f"Ended, says {by}: {words}" if by else f"Ended: {words}")
        case _:
            return None


def run_text(event: RunStarted | RunFinished | EvidenceFound) -> EventText:
    match event:
        case RunStarted():
            return EventText(text=run_title(event))
        case RunFinished():
            outcome = run_outcome(event)
            return EventText(text=run_title(event), outcome=outcome, in_evidence=is_told_by_evidence(event))
        case EvidenceFound():
            return EventText(text=evidence_text(event))


def event_texts(events: Sequence[Recorded]) -> dict[str, EventText]:
    """Return the display texts by the sequence number of the event."""
    texts = ((str(recorded.seq), event_text_for_page(recorded.event)) for recorded in events)
    return {seq: text for seq, text in texts if text is not None}
