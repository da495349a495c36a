"""The closed union of everything that can happen in a chat; nothing is ever changed or removed.

Adding an event breaks the build at every `match` that must learn it. Changing one needs a new format
version and an upcaster in `codec`.
"""

from typing import Literal

from septet.common.values import Value
from septet.domain.base import DeliveredFile, FileState
from septet.domain.citations import Reference, Source
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
    """Data files of the person, which programs may read and never write."""
    facts: tuple[str, ...] = ()
    own_facts: tuple[str, ...] = ()
    """The person's facts among them."""
    existing: bool = False
    """The folder was not empty, or is part of a repository: only the program is written into it."""


class ChatContinued(Value):
    """The chat continues after an end, perhaps with other bounds."""

    budget: Budget


class ChatEnded(Value):
    """`by` is the member whose turn ended the chat. The reason counts only if the log confirms it (`ways.endings`)."""

    reason: EndReason
    detail: str = ""
    by: str = ""


class ChatHalted(Value):
    """An error that a person must fix stopped the work. The turn stays open: resuming continues it."""

    cause: str
    remedy: str = ""

    @property
    def text(self) -> str:
        return f"{self.cause}: {self.remedy}" if self.remedy else self.cause


class BudgetReached(Value):
    """The next request would have exceeded a budget, so it was not sent."""

    by: str
    why: str


class TurnOpened(Value):
    """A member's turn begins (in other frameworks: a request to speak), and the turn before it ends.

    `role` is given if it differs from the name: any process that serves the role may take the turn. In step mode,
    `next` is the member that speaks after the person lets the chat continue.
    """

    speaker: str
    role: str = ""
    next: str = ""


class StepGranted(Value):
    """The person lets the chat continue; in step mode for one more turn, or `freely` for all.

    `action` is the digest of the turn that was granted: for another turn or another version it has no effect.
    """

    freely: bool = False
    action: str = ""


class StopRequested(Value):
    by: str = "person"


class ModelAnswered(Value):
    """A paid answer, stored before it is used. `prompt` is the sha256 of the request."""

    role: str
    answer: Answer
    prompt: str = ""


class MemberBriefed(Value):
    """The next message in the thread of a member that works with tools, verbatim.

    `system` is its system prompt, sent once; `images` are blobs. If it `shortens`, earlier tool results of the member
    are shown as one line each from here on.
    """

    member: str
    text: str
    images: tuple[str, ...] = ()
    system: str = ""
    shortens: bool = False


class ReplyRefused(Value):
    """An answer that could not be used; the member is asked again, with the reason.

    `shown` are the person's files that the reason quotes: the next answer may replace them. `kept` are files of the
    answer that need not be sent again, `missing` those that must.
    """

    role: str
    reason: str
    shown: tuple[FileRef, ...] = ()
    kept: tuple[FileRef, ...] = ()
    missing: tuple[str, ...] = ()


class PersonSpoke(Value):
    """A message of the person: feedback on a plan, a remark to a review, an instruction, an answer."""

    text: str
    to: str = ""


class WorkAccepted(Value):
    """The person accepts the version with this `tree` (if empty: the newest) as it is, whatever the checks say."""

    tree: str = ""


class PlanProposed(Value):
    """A plan `by` the planner, the person, who wrote or edited it, or Septet, if the goal itself is sufficient.

    A manager's plan is its task to the coder, with the checks that it named; it needs no approval.
    """

    plan: Plan
    by: Literal["planner", "person", "septet", "manager"] = "planner"
    asked: tuple[str, ...] = ()
    """Calls of which the planner was asked what the goal wants: it may have added examples that are held back."""


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
    """Whether the other candidates for a version behave like it on calls like the plan's examples.

    They agree, one of them returns another result (`detail` names the call), or there is none to compare.
    """

    verdict: Literal["agreed", "contradicted", "unconfirmed"]
    detail: str = ""


class VersionWritten(Value):
    """A version of the program: its files are blobs, the workspace is only a copy of them.

    `answers` are the coder's answers to the findings of the last review. A version that was `found` is the person's:
    the folder contained something unexpected. `note` is for people.

    Over a base, `files` are those that the team has changed, and `deleted` those that it has deleted.
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
    """A run is about to start. `about` is the requirement that is checked, or the script's path."""

    id: str
    purpose: Purpose
    command: str
    tree: str
    mode: ModeName = ""
    about: str = ""
    only: tuple[str, ...] = ()
    """The tests to run, if not all."""


class RunFinished(Value):
    """A run in the sandbox with its result. Only this event counts as a run: members cannot claim one."""

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
        """The purpose of the run, as text."""
        return f"{self.purpose} {self.about}".rstrip()


class SpecialCase(Value):
    """Code that nothing but a tested input needs: taken away, this call gives something else, and others do not."""

    place: str
    """File and line."""
    call: str
    """As an example names it: `module.function(arguments)`."""
    gives: str
    without: str
    """What the call gives, and what it gives without that code."""
    general: bool
    """Whether the rest of the program computes results, so that this is an exception, or lists cases as well."""


class EvidenceFound(Value):
    """Whether a requirement's check passed on a tree, and the evidence."""

    item: str
    check: Check
    passed: bool
    detail: str
    tree: str
    run: str = ""
    held_before: bool = False
    """Whether the check holds without the version's changes too."""
    written: bool = False
    """Whether the text that a command looks for is written in the program."""
    judged: bool = False
    """Whether the check fails on the base, but not with empty functions: it shows a text, which the reviewer judges."""
    signs: tuple[str, ...] = ()
    """What in the files says that the check may hold here, or for these tests, alone."""
    special: tuple[SpecialCase, ...] = ()
    """Code by which the check holds, and which nothing but the tested inputs need."""


class ReviewGiven(Value):
    """The reviewer's findings and verdict, and the person's remarks.

    `overruled` says why the reviewer's verdict does not count: it accepted although checks failed, or demanded more
    without evidence although all passed. `green` is whether all checks had passed.
    """

    version: int
    tree: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    overruled: str = ""
    remarks: tuple[str, ...] = ()
    green: bool = False


class ExampleGiven(Value):
    """The exemplar's example for a failure; without code if it found none."""

    failure: str
    code: str = ""
    source: str = ""
    title: str = ""


class FactsChanged(Value):
    """Facts about the project were added or dropped."""

    by: str
    change: FactsChange


class SpeakerChosen(Value):
    """The manager chose the next speaker; `fallback` if its reply named no permitted one."""

    speaker: str
    fallback: bool = False


class Terminated(Value):
    """The manager declares the task resolved; no other member can."""

    summary: str


class DecisionRecorded(Value):
    """A decision and its reason, for later explanation. `case` names the situation that a reasoning step found."""

    by: str
    what: str
    why: str
    case: str = ""


class ToolCalled(Value):
    """A tool is about to be used. `call` is the model's own id of the call."""

    id: str
    by: str
    name: str
    arguments: str
    call: str = ""


class ToolAnswered(Value):
    """The result of a tool call for the member, and the files that the call changed, as blobs.

    `shown` are the person's files that the call read, as they were then. `summary` is one line for people; `whole` is
    the blob of the full text, if it was truncated. Who is `ready` has handed in what its calls changed.
    """

    id: str
    text: str
    failed: bool = False
    ready: bool = False
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
    """The person's folder at the start: a repository, a plain folder or empty. `manifest` is the blob of its entries.

    `dirty` are the first of `dirty_count` files that differ from the commit; `secrets` are files that look like secrets
    and are shown to nobody. The command `tests` was found in `tests_source`. `archive` are the blobs of a packed
    copy, for members on machines that do not have the folder. Programs may read the `unmasked` ones of the secrets, as
    the person says; `scanned` is what texts are scanned with before they are sent.
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
    archive: tuple[str, ...] = ()
    unmasked: tuple[str, ...] = ()
    scanned: Literal["", "patterns", "kingfisher"] = ""


class EnvironmentProbed(Value):
    """What programs run with, as the sandbox itself says: Python's version, importable packages, some commands."""

    python: str
    packages: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


class BaseMoved(Value):
    """The person changed files in the folder: they are merged into the work, or are conflicts."""

    changed: tuple[FileState, ...]
    conflicts: tuple[str, ...] = ()


class DeliveryStarted(Value):
    """A delivery is about to start: each file of the person before and after it.

    `undoes` is the number of the delivery that is taken back. Where the folder becomes another tree than the one that
    was checked, by a merge or a choice of files, it was checked before: `unproven` says what does not hold there.
    """

    number: int
    tree: str
    files: tuple[DeliveredFile, ...]
    undoes: int = 0
    unproven: tuple[str, ...] = ()


class Delivered(Value):
    """The files are in the person's folder, or on a `branch`; what could not be merged is in the `patch` there.

    `patch_sha256` is the patch as it was written: an undo removes it, unless the person has changed it.
    """

    number: int
    tree: str
    files: tuple[DeliveredFile, ...]
    undoes: int = 0
    patch: str = ""
    patch_sha256: str = ""
    branch: str = ""
    commit: str = ""
    unproven: tuple[str, ...] = ()


class DataDescribed(Value):
    """A description of a data file, which is not changed."""

    path: str
    sha256: str
    size: int
    card: str


class AnswerGiven(Value):
    """The answer to the person, its grounds, the sources of its numbers, and the lines of files that it names.

    `unverified` are references that lead to no line, each with the reason.
    """

    by: str
    text: str
    ground: Literal["complete", "error", "certain"]
    sources: tuple[Source, ...] = ()
    references: tuple[Reference, ...] = ()
    unverified: tuple[str, ...] = ()


class PackagesWanted(Value):
    """The newest code imports packages that are not installed."""

    missing: MissingPackages


class PackagesDecided(Value):
    """Whether exactly these may be installed; `always` applies to all later packages of the chat."""

    names: tuple[str, ...]
    allowed: bool
    always: bool = False
    by: Literal["person", "flag", "policy"] = "person"


class PackagesInstalled(Value):
    """The result of the installation, made in a sandbox of its own into the workspace's environment."""

    installation: Installation


PackageEvent = PackagesWanted | PackagesDecided | PackagesInstalled
BaseEvent = BaseSurveyed | EnvironmentProbed | BaseMoved | DeliveryStarted | Delivered
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
    """An event in the log: with its chat, its sequence number and when it was stored (seconds since 1970)."""

    chat: str
    seq: int
    at: float
    event: Event
