"""The state of a chat, folded from its log. Only `reduce` makes new states; all other code reads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.base import FileState
from septet.domain.events import (
    AnswerGiven,
    BaseMoved,
    BaseSurveyed,
    BudgetReached,
    ChatEnded,
    ChatHalted,
    DataDescribed,
    DecisionRecorded,
    Delivered,
    DeliveryStarted,
    EnvironmentProbed,
    EvidenceFound,
    ExampleGiven,
    MemberBriefed,
    ModelAnswered,
    PersonSpoke,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    SnapshotTaken,
    Terminated,
    ToolAnswered,
    ToolCalled,
    VersionWritten,
)
from septet.domain.files import FileRef
from septet.domain.messages import Usage
from septet.domain.packages import Provisions
from septet.domain.plans import Author, Challenge, Plan, Requirement, Wish
from septet.domain.teams import Budget, TeamSpec

T = TypeVar("T")


class Trail(Sequence[T], Generic[T]):
    """A frozen view of the first `length` items of a shared list.

    Folding n events into tuples copies n²/2 items. Here the newest view extends the shared list in
    place; an older view that is extended again (a fork) copies once.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Sequence[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def plus(self, item: T) -> "Trail[T]":
        longer = object.__new__(type(self))
        longer._items = self._items if len(self._items) == self._length else self._items[: self._length]
        longer._items.append(item)
        longer._length = self._length + 1
        return longer

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self._items[: self._length][index]
        return self._items[range(self._length)[index]]

    def __iter__(self) -> Iterator[T]:
        return (self._items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and self[:] == other[:]

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # compared by content, like a list

    def __repr__(self) -> str:
        return f"Trail({self[:]!r})"


class Turn(Value):
    """Whose turn it is and what happened in it so far.

    After a crash the turn continues from here: `answers` were paid for and are used, a `closed` turn
    has nothing left to do.
    """

    speaker: str
    number: int
    opened_at: int = 0
    """The sequence number of the event that opened it."""
    remarks_at_opening: int = 0
    """How many open remarks of the person there were then."""
    answers: tuple[ModelAnswered, ...] = ()
    briefings: tuple[int, ...] = ()
    """For each message to the member in this turn, how many answers it had given before."""
    calls: tuple[ToolCalled, ...] = ()
    snapshot: SnapshotTaken | None = None
    has_decision: bool = False
    """Whether a decision was recorded in this turn."""
    closed: bool = False
    next: str = ""
    """In step mode, who speaks if the person lets the chat continue."""


class Spending(Value):
    """What a member has used; `answers` is how many it gave, `seconds` the time of its model and programs."""

    answers: int = 0
    usage: Usage = Usage()
    cost: float = 0.0
    seconds: float = 0.0

    def plus(self, other: "Spending") -> "Spending":
        return Spending(
            answers=self.answers + other.answers,
            usage=self.usage.plus(other.usage),
            cost=self.cost + other.cost,
            seconds=self.seconds + other.seconds,
        )


class Base(Value):
    """The person's folder that the chat works on: the survey at its start, the person's changes, the deliveries."""

    survey: BaseSurveyed
    moved: Mapping[str, FileState] = {}
    """Files of the person's folder that differ from the manifest now."""
    conflicts: tuple[str, ...] = ()
    """Files that the person changed in a way that could not be merged with the team's change."""
    baseline: RunFinished | None = None
    """The run of the project's own tests before anything was changed."""
    deliveries: tuple[Delivered, ...] = ()
    delivery: DeliveryStarted | None = None
    """A delivery that has started and not ended."""

    def after_move(self, event: BaseMoved) -> "Base":
        moved = {**self.moved, **{file.path: file for file in event.changed}}
        return replace(self, moved=moved, conflicts=event.conflicts)

    def after_delivery(self, event: DeliveryStarted | Delivered) -> "Base":
        if isinstance(event, DeliveryStarted):
            return replace(self, delivery=event)
        written = [file for file in event.files if file.how != "conflict" and not event.branch]
        moved = {**self.moved, **{file.path: file.base_after or file.after for file in written}}
        return replace(self, delivery=None, deliveries=(*self.deliveries, event), moved=moved)


class PlanState(Value):
    """The plan, and what the person has asked for since."""

    current: Plan | None = None
    approved: bool = False
    wishes: tuple[Wish, ...] = ()
    """What the person has asked for since the plan was approved."""
    challenges: tuple[Challenge, ...] = ()
    """Checks of the plan that the coder says are wrong, each once."""
    authors: Mapping[str, Author] = {}
    """Who wrote each of the plan's checks, by the check's text."""
    met_before: Mapping[str, int] = {}
    """Requirements that earlier versions met, and the last version that did: failing one is a regression.
    """
    confirmed: frozenset[str] = frozenset()
    """Calls of which the planner was asked what the goal wants."""
    told: frozenset[str] = frozenset()
    """Checks that are held back and of which the coder has been told what they give, by their text."""

    @property
    def items(self) -> tuple[Requirement, ...]:
        return self.current.items if self.current else ()


class WorkState(Value):
    """The versions of the program, and what is known of them.

    `runs`, `evidence` and `review` are of the newest tree only: what was seen on older code proves nothing.
    """

    data: tuple[str, ...] = ()
    data_cards: tuple[DataDescribed, ...] = ()
    provisions: Provisions = Provisions()

    versions: Trail[VersionWritten] = Trail()
    unchanged_versions: int = 0
    """How many of the newest versions in a row changed nothing."""
    runs: tuple[RunFinished, ...] = ()
    evidence: Mapping[str, EvidenceFound] = {}
    review: ReviewGiven | None = None
    reviews: Trail[ReviewGiven] = Trail()
    green_rejections: int = 0
    """How many reviews in a row demanded more although every check had passed."""
    accepted: bool = False
    """Whether the person accepted the newest version as it is."""

    failure: str = ""
    """The signature of the newest version's first failure."""
    last_failure: str = ""
    same_failures: int = 0
    """How many versions in a row failed in the same way."""
    failed_tests: frozenset[str] = frozenset()
    last_failed_tests: frozenset[str] = frozenset()
    """Failed tests of the newest version, and of the last version before it that was tested."""
    diagnosis: DecisionRecorded | None = None
    """What the newest reasoning step found; None after a new version."""
    example: ExampleGiven | None = None

    failed_before: frozenset[str] = frozenset()
    """Requirements that the version before the newest one did not meet."""
    artefacts: Mapping[str, str] = {}
    """Files that runs of the newest version made or changed (path to sha256)."""
    created_paths: frozenset[str] = frozenset()
    """New files among them, and new folders, links and pipes: only these may ever be removed."""
    stale_artefacts: Mapping[str, str] = {}
    """What runs of older versions created: removed before the newest one runs. Folders and links have no sha256."""
    person_files: frozenset[str] = frozenset()
    """Files that the team has not written from scratch: the person brought or changed them."""
    expected_digests: Mapping[str, tuple[str, ...]] = {}
    """Digests that a file may have unless the person changed it: the team wrote it, or was shown it.

    A sha256, ANY, or "" for no file.
    """
    snapshots: Trail[SnapshotTaken] = Trail()

    @property
    def version(self) -> VersionWritten | None:
        return self.versions[-1] if self.versions else None

    @property
    def files(self) -> tuple[FileRef, ...]:
        """The files of the newest version."""
        return self.version.files if self.version else ()


class TalkState(Value):
    """The messages of the chat, its tool calls and replies."""

    messages: Trail[MemberBriefed | ModelAnswered | PersonSpoke | RunFinished | ToolCalled | ToolAnswered] = (
        Trail()
    )
    remarks: tuple[PersonSpoke, ...] = ()
    """Messages of the person that neither planner nor coder has used yet."""
    answer: AnswerGiven | None = None
    """The answer to the person; None while a question is open."""
    open_calls: tuple[ToolCalled, ...] = ()
    """Calls that have no answer yet, the oldest first."""
    tool_results: Mapping[str, ToolAnswered] = {}
    """The results of the calls of the open turn."""
    refused_reply: ReplyRefused | None = None
    """The reply that could not be used, until one can."""
    refusals: int = 0
    """How many replies in a row could not be used."""

    def refusal_of(self, member: str) -> ReplyRefused | None:
        """The refused reply, if it was that member's."""
        return self.refused_reply if self.refused_reply and self.refused_reply.role == member else None


class FloorState(Value):
    """Whose turn it is, and whose it was."""

    turn: Turn | None = None
    previous_speaker: str = ""
    """The last speaker other than the current one."""
    chosen_speaker: str = ""
    """The speaker that the manager chose; valid for the next turn."""
    turn_counts: Mapping[str, int] = {}
    """How many turns each member has had."""
    refused_turn_counts: Mapping[str, int] = {}
    """How many turns of each member ended with an unusable reply."""
    granted_steps: int = 0
    """How many steps the person has allowed, in step mode."""
    consulted_tree: str = ""
    """The tree that the person was last asked about."""
    versions_at_consultation: int = 0
    """How many versions there were then."""
    termination: Terminated | None = None

    @property
    def speaker(self) -> str:
        """Whose turn it is, or was last; empty before the first turn."""
        return self.turn.speaker if self.turn else ""


class SpendingState(Value):
    """What the chat has used."""

    members: Mapping[str, Spending] = {}
    latest_answers: Mapping[str, Spending] = {}
    """What each member's newest answer cost."""
    at_opening: Mapping[str, Spending] = {}
    """What each member had spent when the chat was last opened: its own budget counts from there."""
    seconds: float = 0.0
    """Time that models and programs took; time of the person is not counted."""
    budget_reached: BudgetReached | None = None

    @property
    def total(self) -> Spending:
        total = Spending()
        for part in self.members.values():
            total = total.plus(part)
        return total


class State(Value):
    """The whole state of a chat, in slices."""

    chat: str = ""
    seq: int = 0
    goal: str = ""
    team: TeamSpec = TeamSpec(name="", members=())
    budget: Budget = Budget()
    workspace: str = ""
    existing: bool = False
    """The folder is the person's: it held something before, or is part of a repository."""
    base: Base | None = None
    """The person's folder; None in old logs without a survey."""
    environment: EnvironmentProbed | None = None
    """What programs run with; None where nobody needs to know, or programs run on other machines."""
    facts: tuple[str, ...] = ()
    """What every team that works in this project should know."""
    own_facts: tuple[str, ...] = ()
    """The person's facts: they are not dropped for members' facts."""

    plan: PlanState = PlanState()
    work: WorkState = WorkState()
    talk: TalkState = TalkState()
    floor: FloorState = FloorState()
    spending: SpendingState = SpendingState()

    stop_requested: bool = False
    halted: ChatHalted | None = None
    """The error that stopped the work, until it continues."""
    ended: ChatEnded | None = None
    before_end: "State | None" = None
    """The state before the end, from which the end must follow."""
