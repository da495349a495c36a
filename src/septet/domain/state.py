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
from septet.domain.messages import Usage
from septet.domain.packages import Provisions
from septet.domain.plans import Plan, Wish
from septet.domain.teams import Budget, TeamSpec
from septet.domain.trail import Trail


class Turn(Value):
    """Whose turn it is and what it has brought so far.

    After a crash the turn goes on from here: `answers` were paid for and are used, a `settled` turn
    has nothing left to do. `heard` is how many remarks the person had made when it opened.
    """

    speaker: str
    number: int
    opened: int = 0
    """The sequence of the event that opened it."""
    answers: tuple[ModelAnswered, ...] = ()
    calls: tuple[ToolCalled, ...] = ()
    snapshot: SnapshotTaken | None = None
    decided: bool = False
    heard: int = 0
    settled: bool = False


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
    deliveries: tuple[Delivered, ...] = ()
    delivery: DeliveryStarted | None = None
    """One that has begun and not ended."""

    def after_move(self, event: BaseMoved) -> "Base":
        moved = {**self.moved, **{one.path: one for one in event.changed}}
        return replace(self, moved=moved, conflicts=event.conflicts)

    def after_delivery(self, event: DeliveryStarted | Delivered) -> "Base":
        if isinstance(event, DeliveryStarted):
            return replace(self, delivery=event)
        return replace(self, delivery=None, deliveries=(*self.deliveries, event))


class State(Value):
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

    plan: Plan | None = None
    approved: bool = False
    wishes: tuple[Wish, ...] = ()
    """What the person has asked for since the plan was approved."""

    versions: Trail[VersionWritten] = Trail()
    repeats: int = 0
    """How many of the newest versions in a row brought no change."""
    runs: tuple[RunFinished, ...] = ()
    """Of the newest tree only, like `evidence` and `review`: what was seen on older code proves nothing."""
    evidence: Mapping[str, EvidenceFound] = {}
    review: ReviewGiven | None = None
    consulted: str = ""
    """The tree that the person was last asked about."""
    consulted_at: int = 0
    """How many versions there were then."""
    green_rejections: int = 0
    """How many reviews in a row wanted more although every check had passed."""
    failure: str = ""
    """What went wrong first with the newest version, without what differs from run to run."""
    last_failure: str = ""
    failing: int = 0
    """How many versions in a row failed in the same way."""
    failed_tests: frozenset[str] = frozenset()
    last_failed_tests: frozenset[str] = frozenset()
    """Those of the newest version, and of the one before it that was tested."""
    example: ExampleGiven | None = None
    reviews: Trail[ReviewGiven] = Trail()
    met_before: Mapping[str, int] = {}
    """Requirements of the plan that earlier versions met, and the last of these versions: failing one is a regression.
    """
    failed_before: frozenset[str] = frozenset()
    """Requirements that the version before the newest one did not meet."""
    artefacts: Mapping[str, str] = {}
    """Files that runs of the newest version made or changed (path to sha256)."""
    created: frozenset[str] = frozenset()
    """Those of them that were not there before, and folders, links and pipes: only these may ever be removed."""
    stale: Mapping[str, str] = {}
    """What runs of older versions created: swept away before the newest one runs. Folders and links have no sha256."""
    borrowed: frozenset[str] = frozenset()
    """Files that the team has not written from scratch: the person brought or changed them."""
    expected: Mapping[str, tuple[str, ...]] = {}
    """What may stand at a path unless the person changed it: the team wrote it, or was shown it.

    A sha256, ANY, or "" for no file.
    """

    diagnosis: DecisionRecorded | None = None
    """What the newest reasoning step found; nothing once the code has moved on."""
    snapshots: Trail[SnapshotTaken] = Trail()
    data: tuple[str, ...] = ()
    cards: tuple[DataDescribed, ...] = ()

    provisions: Provisions = Provisions()

    messages: Trail[ModelAnswered | PersonSpoke | RunFinished | ToolCalled | ToolAnswered] = Trail()
    results: Mapping[str, ToolAnswered] = {}
    """What came of the calls of the open turn."""
    waiting: tuple[ToolCalled, ...] = ()
    """Calls that have no answer yet, the oldest first."""
    answered: AnswerGiven | None = None
    """What the person was told; nothing while a question is open."""
    remarks: tuple[PersonSpoke, ...] = ()
    """What the person said and neither planner nor coder has worked in yet."""
    previous: str = ""
    """Who spoke last, before whoever speaks now."""
    chosen: str = ""
    """Whom the manager gave the floor; valid for the turn after its own."""
    terminated: Terminated | None = None
    refused: ReplyRefused | None = None
    refusals: int = 0

    turn: Turn | None = None
    turns: Mapping[str, int] = {}
    refused_turns: Mapping[str, int] = {}
    """How many turns of each member brought a reply that could not be used."""
    steps: int = 0
    spending: Mapping[str, Spending] = {}
    latest: Mapping[str, Spending] = {}
    """What each member's newest answer cost."""
    spending_at_opening: Mapping[str, Spending] = {}
    """What each member had spent when the chat was last opened: its own budget counts from there."""
    seconds: float = 0.0
    """Time that models and programs took; a person's thinking is not counted."""
    budget_reached: BudgetReached | None = None
    stop_requested: bool = False
    accepted: bool = False
    """The person took the newest version as it is."""
    halted: ChatHalted | None = None
    """The error that stopped the work, until it goes on."""
    ended: ChatEnded | None = None
    before_end: "State | None" = None
    """The chat when it was ended: what the end has to follow from."""

    @property
    def version(self) -> VersionWritten | None:
        return self.versions[-1] if self.versions else None

    @property
    def spent(self) -> Spending:
        total = Spending()
        for part in self.spending.values():
            total = total.plus(part)
        return total
