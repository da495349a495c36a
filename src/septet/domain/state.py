"""What a chat's log adds up to. Only `reduce` makes new states; everybody else reads."""

from collections.abc import Mapping

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
from septet.domain.trail import Trail


class Turn(Value):
    """Whose turn it is and what it has brought so far.

    After a crash the turn goes on from here: `answers` were paid for and are used, a `closed` turn
    has nothing left to do.
    """

    speaker: str
    number: int
    opened_at: int = 0
    """The sequence of the event that opened it."""
    remarks_at_opening: int = 0
    """How many remarks the person had made by then."""
    answers: tuple[ModelAnswered, ...] = ()
    briefings: tuple[int, ...] = ()
    """For each time that the member was told something, how many answers it had given before."""
    calls: tuple[ToolCalled, ...] = ()
    snapshot: SnapshotTaken | None = None
    has_decision: bool = False
    """A decision was recorded in it."""
    closed: bool = False


class Spending(Value):
    """What a member has cost; `answers` is how many it gave, `seconds` what its model and programs took."""

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
    """What the chat works on: the survey at its beginning, what the person changed since, and what was delivered."""

    survey: BaseSurveyed
    moved: Mapping[str, FileState] = {}
    """What stands in the person's folder now where it is not what the manifest says."""
    conflicts: tuple[str, ...] = ()
    """Files that the person changed in a way that could not be merged with the team's change."""
    baseline: RunFinished | None = None
    """What became of the project's own tests before anything was changed."""
    deliveries: tuple[Delivered, ...] = ()
    delivery: DeliveryStarted | None = None
    """One that has begun and not ended."""

    def after_move(self, event: BaseMoved) -> "Base":
        moved = {**self.moved, **{one.path: one for one in event.changed}}
        return replace(self, moved=moved, conflicts=event.conflicts)

    def after_delivery(self, event: DeliveryStarted | Delivered) -> "Base":
        if isinstance(event, DeliveryStarted):
            return replace(self, delivery=event)
        done = [one for one in event.files if one.how != "conflict" and not event.branch]
        moved = {**self.moved, **{one.path: one.base_after or one.after for one in done}}
        return replace(self, delivery=None, deliveries=(*self.deliveries, event), moved=moved)


class PlanState(Value):
    """What the person and the planner want."""

    current: Plan | None = None
    approved: bool = False
    wishes: tuple[Wish, ...] = ()
    """What the person has asked for since the plan was approved."""
    challenges: tuple[Challenge, ...] = ()
    """Checks of the plan that the coder says are wrong, each once."""
    authors: Mapping[str, Author] = {}
    """Who wrote each of the plan's checks, by the check's text."""
    met_before: Mapping[str, int] = {}
    """Requirements of the plan that earlier versions met, and the last of these versions: failing one is a regression.
    """

    @property
    def items(self) -> tuple[Requirement, ...]:
        return self.current.items if self.current else ()


class WorkState(Value):
    """What the team has made, and what is known of it.

    `runs`, `evidence` and `review` are of the newest tree only: what was seen on older code proves nothing.
    """

    data: tuple[str, ...] = ()
    data_cards: tuple[DataDescribed, ...] = ()
    provisions: Provisions = Provisions()

    versions: Trail[VersionWritten] = Trail()
    unchanged_versions: int = 0
    """How many of the newest versions in a row brought no change."""
    runs: tuple[RunFinished, ...] = ()
    evidence: Mapping[str, EvidenceFound] = {}
    review: ReviewGiven | None = None
    reviews: Trail[ReviewGiven] = Trail()
    green_rejections: int = 0
    """How many reviews in a row wanted more although every check had passed."""
    accepted: bool = False
    """The person took the newest version as it is."""

    failure: str = ""
    """What went wrong first with the newest version, without what differs from run to run."""
    last_failure: str = ""
    same_failures: int = 0
    """How many versions in a row failed in the same way."""
    failed_tests: frozenset[str] = frozenset()
    last_failed_tests: frozenset[str] = frozenset()
    """Those of the newest version, and of the one before it that was tested."""
    diagnosis: DecisionRecorded | None = None
    """What the newest reasoning step found; nothing once the code has moved on."""
    example: ExampleGiven | None = None

    failed_before: frozenset[str] = frozenset()
    """Requirements that the version before the newest one did not meet."""
    artefacts: Mapping[str, str] = {}
    """Files that runs of the newest version made or changed (path to sha256)."""
    created_paths: frozenset[str] = frozenset()
    """Those of them that were not there before, and folders, links and pipes: only these may ever be removed."""
    stale_artefacts: Mapping[str, str] = {}
    """What runs of older versions created: swept away before the newest one runs. Folders and links have no sha256."""
    person_files: frozenset[str] = frozenset()
    """Files that the team has not written from scratch: the person brought or changed them."""
    expected_digests: Mapping[str, tuple[str, ...]] = {}
    """What may stand at a path unless the person changed it: the team wrote it, or was shown it.

    A sha256, ANY, or "" for no file.
    """
    snapshots: Trail[SnapshotTaken] = Trail()

    @property
    def version(self) -> VersionWritten | None:
        return self.versions[-1] if self.versions else None

    @property
    def files(self) -> tuple[FileRef, ...]:
        """Those of the newest version."""
        return self.version.files if self.version else ()


class TalkState(Value):
    """What was said."""

    messages: Trail[MemberBriefed | ModelAnswered | PersonSpoke | RunFinished | ToolCalled | ToolAnswered] = (
        Trail()
    )
    remarks: tuple[PersonSpoke, ...] = ()
    """What the person said and neither planner nor coder has worked in yet."""
    answer: AnswerGiven | None = None
    """What the person was told; nothing while a question is open."""
    open_calls: tuple[ToolCalled, ...] = ()
    """Calls that have no answer yet, the oldest first."""
    tool_results: Mapping[str, ToolAnswered] = {}
    """What came of the calls of the open turn."""
    refused_reply: ReplyRefused | None = None
    """The reply that could not be used, until one can."""
    refusals: int = 0
    """How many replies in a row could not be used."""

    def refusal_of(self, member: str) -> ReplyRefused | None:
        """The refused reply, if it was that member's."""
        return self.refused_reply if self.refused_reply and self.refused_reply.role == member else None


class FloorState(Value):
    """Who speaks, and who has spoken."""

    turn: Turn | None = None
    previous_speaker: str = ""
    """Who spoke last, before whoever speaks now."""
    chosen_speaker: str = ""
    """Whom the manager gave the floor; valid for the turn after its own."""
    turn_counts: Mapping[str, int] = {}
    """How many turns each member has had."""
    refused_turn_counts: Mapping[str, int] = {}
    """How many turns of each member brought a reply that could not be used."""
    granted_steps: int = 0
    """How many steps the person has allowed, where it goes step by step."""
    consulted_tree: str = ""
    """The tree that the person was last asked about."""
    versions_at_consultation: int = 0
    """How many versions there were then."""
    termination: Terminated | None = None

    @property
    def speaker(self) -> str:
        """Whose turn it is, or was last; nobody's before the first."""
        return self.turn.speaker if self.turn else ""


class SpendingState(Value):
    """What the chat has cost."""

    members: Mapping[str, Spending] = {}
    latest_answers: Mapping[str, Spending] = {}
    """What each member's newest answer cost."""
    at_opening: Mapping[str, Spending] = {}
    """What each member had spent when the chat was last opened: its own budget counts from there."""
    seconds: float = 0.0
    """Time that models and programs took; a person's thinking is not counted."""
    budget_reached: BudgetReached | None = None

    @property
    def total(self) -> Spending:
        total = Spending()
        for part in self.members.values():
            total = total.plus(part)
        return total


class State(Value):
    """The chat itself, and a slice for each thing that readers ask about."""

    chat: str = ""
    seq: int = 0
    goal: str = ""
    team: TeamSpec = TeamSpec(name="", members=())
    budget: Budget = Budget()
    workspace: str = ""
    existing: bool = False
    """The folder is the person's: it held something before, or is part of a repository."""
    base: Base | None = None
    """What the chat began on; nothing in a log from before there were surveys."""
    facts: tuple[str, ...] = ()
    """What every team that works in this project should know."""
    own_facts: tuple[str, ...] = ()
    """Those that the person said: members' facts do not push them out."""

    plan: PlanState = PlanState()
    work: WorkState = WorkState()
    talk: TalkState = TalkState()
    floor: FloorState = FloorState()
    spending: SpendingState = SpendingState()

    stop_requested: bool = False
    halted: ChatHalted | None = None
    """The error that stopped the work, until it goes on."""
    ended: ChatEnded | None = None
    before_end: "State | None" = None
    """The chat when it was ended: what the end has to follow from."""
