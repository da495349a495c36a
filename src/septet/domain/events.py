"""The closed union of everything that can happen in a chat; nothing is ever changed or removed.

Adding an event breaks the build at every `match` that must learn it. Changing one needs a new format
version and an upcaster in `codec`.
"""

from typing import Literal

from septet.common.values import Value
from septet.domain.base import DeliveredFile, FileState
from septet.domain.citations import Source
from septet.domain.facts import FactsChange
from septet.domain.files import FileChange, FileRef
from septet.domain.messages import Answer
from septet.domain.packages import Installation, MissingPackages
from septet.domain.plans import Check, Plan
from septet.domain.reviews import Finding, FindingAnswer, Verdict
from septet.domain.runs import ModeName, Purpose, RunResult
from septet.domain.teams import Budget, EndReason, TeamSpec


class ChatStarted(Value):
    """A chat is one piece of work: a goal, a team, a workspace."""

    goal: str
    team: TeamSpec
    workspace: str
    data: tuple[str, ...] = ()
    """Files of the person that programs may read and never write."""
    facts: tuple[str, ...] = ()
    own_facts: tuple[str, ...] = ()
    """Those of the facts that the person said."""
    existing: bool = False
    """The folder held something before, or is part of a repository: nothing but the program goes into it."""


class ChatContinued(Value):
    """Somebody asked for more after an end, perhaps with other bounds."""

    budget: Budget


class ChatEnded(Value):
    """`by` is whose turn it ended: who stored it. What counts of it is what `team.endings` finds in the log."""

    reason: EndReason
    detail: str = ""
    by: str = ""


class ChatHalted(Value):
    """An error that a person must mend stopped the work. The turn stays open: who resumes the chat goes on there."""

    cause: str
    remedy: str = ""

    @property
    def text(self) -> str:
        return f"{self.cause}: {self.remedy}" if self.remedy else self.cause


class BudgetReached(Value):
    """The answer that was due would have exceeded a budget, so nobody was asked for it."""

    by: str
    why: str


class TurnOpened(Value):
    """A member got the floor (in other frameworks: a request to speak). It closes the turn before it.

    `role` is told where it differs from the name: whoever serves it may take the turn.
    """

    speaker: str
    role: str = ""


class StepGranted(Value):
    """The person lets the chat go on: a stepwise one by one more turn, or by all that are left."""

    freely: bool = False


class StopRequested(Value):
    by: str = "person"


class ModelAnswered(Value):
    """A paid answer, in the log before anybody uses it. `prompt` is the sha256 of the request."""

    role: str
    answer: Answer
    prompt: str = ""


class MemberBriefed(Value):
    """What a member that works with tools is told, word for word: the next message of its thread.

    `system` is its part in the team, told once; `images` are blobs. Where it `shortens`, what tools answered the member
    before is told in a line from here on.
    """

    member: str
    text: str
    images: tuple[str, ...] = ()
    system: str = ""
    shortens: bool = False


class ReplyRefused(Value):
    """An answer that could not be used; the member is asked again, told the reason.

    `shown` are the person's files whose text stands in the reason: the next answer may replace them. `kept` are files
    of the answer that need not come again, `missing` those that must.
    """

    role: str
    reason: str
    shown: tuple[FileRef, ...] = ()
    kept: tuple[FileRef, ...] = ()
    missing: tuple[str, ...] = ()


class PersonSpoke(Value):
    """What the person typed: feedback on a plan, a review remark, a steer, an answer."""

    text: str
    to: str = ""


class WorkAccepted(Value):
    """The person takes the newest version as it is, whatever the checks say."""


class PlanProposed(Value):
    """`by` the planner, whose words are in the log, by the person, who wrote or edited it, or by Septet, where the goal
    says it all. A manager's is its task to the coder: the checks that it named, which nobody has to approve.
    """

    plan: Plan
    by: Literal["planner", "person", "septet", "manager"] = "planner"


class PlanApproved(Value):
    """`plan` is the sha256 of the text that was shown: approving an outdated plan has no effect."""

    plan: str
    by: Literal["person", "flag"] = "person"


class CheckChallenged(Value):
    """The coder says that the check of a requirement is wrong, why, and what should be checked instead."""

    by: str
    item: str
    reason: str
    instead: str = ""


class ChallengeDecided(Value):
    """What was said to a challenge: the check `stands`, or it is wrong. A plan with another check decides it too."""

    by: str
    item: str
    stands: bool
    reason: str


class Confirmation(Value):
    """What the other candidates for a version say of it, by what they make of calls like the plan's examples.

    They agree with it, one of them gives another result (`detail` says on which call), or there is none to compare.
    """

    verdict: Literal["agreed", "contradicted", "unconfirmed"]
    detail: str = ""


class VersionWritten(Value):
    """The coder's work: the files it wrote are blobs, the workspace is only their image.

    `answers` are the coder's words to each finding of the review before it. A version that was `found` is the
    person's: what stood in the folder where something else was expected. `note` is for people to read.

    Over a base, `files` are those that the team has changed, and `deleted` what it has taken away.
    """

    number: int
    files: tuple[FileRef, ...]
    tree: str
    note: str = ""
    answers: tuple[FindingAnswer, ...] = ()
    found: bool = False
    confirmation: Confirmation | None = None
    deleted: tuple[str, ...] = ()


class RunStarted(Value):
    """The intent, recorded before anything runs. `about` is the requirement that is checked, or the script's path."""

    id: str
    purpose: Purpose
    command: str
    tree: str
    mode: ModeName = ""
    about: str = ""
    only: tuple[str, ...] = ()
    """The tests that it is confined to."""


class RunFinished(Value):
    """What the sandbox saw. Only this event counts as a run; nobody can claim one."""

    id: str
    purpose: Purpose
    command: str
    tree: str
    result: RunResult
    mode: ModeName = ""
    about: str = ""
    only: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it was run for, in words."""
        return f"{self.purpose} {self.about}".rstrip()


class EvidenceFound(Value):
    """Whether a requirement's check holds for a tree, and what shows it."""

    item: str
    check: Check
    passed: bool
    detail: str
    tree: str
    run: str = ""


class ReviewGiven(Value):
    """What the reviewer found, and what the person said to it.

    `overruled` says why another verdict counts than the reviewer's: an acceptance over red evidence, or a
    demand without evidence over green. `green` is whether all checks had passed.
    """

    version: int
    tree: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    overruled: str = ""
    remarks: tuple[str, ...] = ()
    green: bool = False


class ExampleGiven(Value):
    """What the exemplar found for a failure; no code where its knowledge holds nothing that fits."""

    failure: str
    code: str = ""
    source: str = ""
    title: str = ""


class FactsChanged(Value):
    """Something to know for good about the project, or no longer."""

    by: str
    change: FactsChange


class SpeakerChosen(Value):
    """The manager chose who speaks next; `fallback` where its words named nobody who may."""

    speaker: str
    fallback: bool = False


class Terminated(Value):
    """The manager, and nobody else, declares the task resolved."""

    summary: str


class DecisionRecorded(Value):
    """A choice that somebody may want explained later. `case` names the situation that a reasoning step found."""

    by: str
    what: str
    why: str
    case: str = ""


class ToolCalled(Value):
    """The intent, recorded before a tool is used. `call` is the model's own name for it."""

    id: str
    by: str
    name: str
    arguments: str
    call: str = ""


class ToolAnswered(Value):
    """What came of a call: told to the member, and the files that it changed, kept as blobs.

    `shown` are files of the person's that the call read, as they were then. `summary` is one line for people; `whole`
    is the blob of a text that was too long to be told.
    """

    id: str
    text: str
    failed: bool = False
    changes: tuple[FileChange, ...] = ()
    shown: tuple[FileRef, ...] = ()
    summary: str = ""
    whole: str = ""


class SnapshotTaken(Value):
    """The workspace as it was; `manifest` is the blob that lists its entries.

    `files` is how many were read in `folder`; those that git ignores and those that look like `secrets` were not.
    """

    number: int
    manifest: str
    entries: int
    note: str = ""
    folder: str = ""
    files: int = 0
    ignored: int = 0
    secrets: tuple[str, ...] = ()


class BaseSurveyed(Value):
    """What the chat begins on: a repository, a plain folder or nothing. `manifest` is the blob that lists its entries.

    `dirty` are the first of `dirty_count` files that differ from the commit; `secrets` look like some, and nobody is
    shown them. The command `tests` was found in `tests_source`.
    """

    kind: Literal["git", "folder", "empty"]
    root: str
    manifest: str = ""
    files: int = 0
    size: int = 0
    commit: str = ""
    dirty: tuple[str, ...] = ()
    dirty_count: int = 0
    ignored: int = 0
    secrets: tuple[str, ...] = ()
    map: str = ""
    conventions: str = ""
    interpreter: str = ""
    tests: str = ""
    tests_source: str = ""


class BaseMoved(Value):
    """What the person changed in the folder since: merged into the work or, where that fails, a conflict."""

    changed: tuple[FileState, ...]
    conflicts: tuple[str, ...] = ()


class DeliveryStarted(Value):
    """The intent, recorded before the first file of the person's is touched: what each was and shall be.

    `undoes` is the number of the delivery that is taken back. Where the folder becomes another tree than the one that
    was checked, by a merge or a choice of files, it was checked before: `unproven` says what does not hold there.
    """

    number: int
    tree: str
    files: tuple[DeliveredFile, ...]
    undoes: int = 0
    unproven: tuple[str, ...] = ()


class Delivered(Value):
    """The files are in the person's folder, or on a `branch`; what could not be merged is in the `patch` there."""

    number: int
    tree: str
    files: tuple[DeliveredFile, ...]
    undoes: int = 0
    patch: str = ""
    branch: str = ""
    commit: str = ""
    unproven: tuple[str, ...] = ()


class DataDescribed(Value):
    """What a data file holds, seen without changing it."""

    path: str
    sha256: str
    size: int
    card: str


class AnswerGiven(Value):
    """The one answer to the person, on which ground it is given, and where its numbers come from."""

    by: str
    text: str
    ground: Literal["complete", "error", "certain"]
    sources: tuple[Source, ...] = ()


class PackagesWanted(Value):
    """The newest code imports what is not there."""

    missing: MissingPackages


class PackagesDecided(Value):
    """Whether they may be installed; `always` holds for all that this chat will want."""

    names: tuple[str, ...]
    allowed: bool
    always: bool = False
    by: Literal["person", "flag", "policy"] = "person"


class PackagesInstalled(Value):
    """What came of it: installed in a sandbox of its own, into the workspace's own environment."""

    installation: Installation


PackageEvent = PackagesWanted | PackagesDecided | PackagesInstalled
BaseEvent = BaseSurveyed | BaseMoved | DeliveryStarted | Delivered
GroupEvent = SpeakerChosen | Terminated | FactsChanged
StopEvent = ChatHalted | ChatEnded | BudgetReached | StopRequested
ChatEvent = ChatStarted | ChatContinued | TurnOpened | StepGranted | StopEvent
ChallengeEvent = CheckChallenged | ChallengeDecided
PlanEvent = PlanProposed | PlanApproved | ChallengeEvent
TalkEvent = MemberBriefed | ModelAnswered | ReplyRefused | PersonSpoke | WorkAccepted | PlanEvent
WorkEvent = (
    VersionWritten | RunStarted | RunFinished | EvidenceFound | ReviewGiven | DecisionRecorded | ExampleGiven
)
ToolEvent = ToolCalled | ToolAnswered | SnapshotTaken | DataDescribed | AnswerGiven
Event = ChatEvent | TalkEvent | GroupEvent | WorkEvent | ToolEvent | PackageEvent | BaseEvent


class Recorded(Value):
    """An event as the log holds it: its chat, its place there and when it was stored (seconds since 1970)."""

    chat: str
    seq: int
    at: float
    event: Event
