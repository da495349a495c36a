"""Exports as files: a page that nothing hostile gets out of, and a zip that unpacks into one folder."""

import io
import re
import zipfile
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from septet.chat.export import (
    export_chat,
    read_streams,
    run_named,
    run_output,
    speaker_and_text,
    survey_text,
)
from septet.chat.export_file import document, html_page, pack_zip
from septet.domain.base import DeliveredFile, FileState
from septet.domain.events import (
    AnswerGiven,
    BaseMoved,
    BaseSurveyed,
    BudgetReached,
    ChatContinued,
    ChatEnded,
    ChatHalted,
    ChatStarted,
    CheckChallenged,
    DataDescribed,
    DecisionRecorded,
    Delivered,
    EnvironmentProbed,
    Event,
    EvidenceFound,
    ExampleGiven,
    FactsChanged,
    MemberBriefed,
    ModelAnswered,
    PackagesDecided,
    PackagesInstalled,
    PersonSpoke,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReplyRefused,
    ReviewGiven,
    RunFinished,
    RunStarted,
    SnapshotTaken,
    SpeakerChosen,
    StepGranted,
    StopRequested,
    Terminated,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
    WorkAccepted,
)
from septet.domain.facts import FactsChange
from septet.domain.files import FileRef, tree_of
from septet.domain.messages import Answer
from septet.domain.packages import Installation
from septet.domain.plans import FileExists, Plan, Requirement
from septet.domain.runs import Purpose, RunResult
from septet.domain.teams import Budget
from septet.errors import BadUsage, LogDamaged
from septet.stores.memory import MemoryBlobs
from septet.ways.table import TEAMS

pytestmark = pytest.mark.anyio

PARTS = "html head meta title style body header h1 h2 p main article strong time div pre details summary span"
TAGS = set(PARTS.split())
HOSTILE = (
    "</pre></div></title></style><script>alert(1)</script><img src=x onerror=alert(1)>"
    "<a href='javascript:alert(1)'>\"'&lt;\n```html\n</pre><iframe src=//evil.example>\n```\n\x1b]0;t\x07\u202e"
)


class Elements(HTMLParser):
    """What a browser would make of a page: elements and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def recorded(*events: Event) -> list[Recorded]:
    return [Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in enumerate(events, 1)]


def chat(text: str) -> list[Recorded]:
    answer = ModelAnswered(role=text[:60] or "coder", answer=Answer(text=text, model="m"))
    started = ChatStarted(goal=text or "x", team=TEAMS["iterate"], workspace="/w")
    return recorded(started, PersonSpoke(text=text), answer)


def check(text: str) -> Elements:
    elements = Elements(text)
    assert elements.tags <= TAGS
    assert set(elements.attributes) <= {"lang", "charset", "http-equiv", "content", "name", "class", "id"}
    named = {name for names in elements.attributes["class"] for name in names.split() if name[:2] != "c-"}
    assert named <= {"report", "outcome", "bad", "meta", "said", "person", "coder", "other"}
    return elements


@given(st.text() | st.text("<>&\"'`/=!-\n ascript").map(lambda text: text + HOSTILE))
def test_no_text_becomes_markup(text: str) -> None:
    check(html_page(chat(text), {text[:40] or "a": text.encode(errors="replace")}, {}))


def test_the_page_allows_itself_nothing_and_shows_everything() -> None:
    shown = html_page(chat(HOSTILE), {"a.py": b"print('<b>')"}, {"evil.svg": b"<svg onload=alert(1)></svg>"})
    elements = check(shown)
    assert any(value.startswith("default-src 'none'") for value in elements.attributes["content"])
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "print(&#x27;&lt;b&gt;&#x27;)" in re.sub("<[^>]+>", "", shown)
    assert "svg" not in shown


async def test_a_zip_holds_transcript_log_and_files() -> None:
    blobs = MemoryBlobs()
    ref = FileRef(path="pkg/a.py", sha256=await blobs.put(b"print(1)\n"), size=9)
    log = recorded(
        ChatStarted(goal="x", team=TEAMS["iterate"], workspace="/w"),
        VersionWritten(number=1, files=(ref,), tree=tree_of((ref,))),
    )
    content = await document(log, "zip", blobs)
    assert content == await document(log, "zip", blobs), "the same chat gives the same bytes"
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    assert archive.namelist() == ["files/pkg/a.py", "log.jsonl", "transcript.md"]
    assert archive.read("files/pkg/a.py") == b"print(1)\n"
    assert archive.read("log.jsonl") == await document(log, "jsonl", blobs)


async def test_a_lost_file_is_an_error_and_no_half_archive() -> None:
    ref = FileRef(path="a.py", sha256="0" * 64, size=9)
    log = recorded(VersionWritten(number=1, files=(ref,), tree="t"))
    for form in ("zip", "html"):
        with pytest.raises(LogDamaged):
            await document(log, form, MemoryBlobs())


def test_unpacking_stays_in_one_folder() -> None:
    for path in ("../up", "/etc/passwd", "a/../../b"):
        with pytest.raises(BadUsage):
            pack_zip({path: b""})
    assert zipfile.ZipFile(io.BytesIO(pack_zip({"..\\up": b""}))).namelist() == [".._up"]


@pytest.mark.parametrize(
    ("survey", "text"),
    [
        (
            BaseSurveyed(kind="git", root="/p", commit="0123456789", files=2),
            "works on 2 files of /p (git 0123456)",
        ),
        (
            BaseSurveyed(kind="git", root="/p", commit="0123456789", files=1, dirty_count=1200),
            "works on 1 file of /p (git 0123456), 1,200 not committed",
        ),
        (
            BaseSurveyed(kind="folder", root="/p", files=3, dirty_count=3, ignored=1000),
            "works on 3 files of /p (folder); leaves out 1,000 ignored",
        ),
    ],
)
def test_what_is_not_committed_is_told_of_a_repository_that_has_some(survey: BaseSurveyed, text: str) -> None:
    assert survey_text(survey) == text


FILE = FileRef(path="a.py", sha256="1", size=1)
PLAN = Plan(items=(Requirement(id="P1", text="adds", check=FileExists(path="a")),))


def run(name: str, purpose: Purpose, result: RunResult) -> RunFinished:
    return RunFinished(id=name, purpose=purpose, command="python a.py", tree="t", result=result)


def evidence(passed: bool) -> EvidenceFound:
    return EvidenceFound(item="P1", check=FileExists(path="a"), passed=passed, detail="no", tree="t")


def delivered(*files: DeliveredFile) -> Delivered:
    return Delivered(number=1, tree="t", files=files)


STATE = FileState(path="a.py")
WRITTEN = DeliveredFile(path="a.py", before=STATE, after=STATE)
MERGED = DeliveredFile(path="b.py", before=STATE, after=STATE, how="merged")
TELLING: list[tuple[Event, tuple[str, str]]] = [
    (ChatEnded(reason="done"), ("septet", "says that it has ended: done")),
    (
        ChatEnded(reason="bound", detail="8 rounds", by="coder"),
        ("coder", "says that it has ended: bound (8 rounds)"),
    ),
    (StopRequested(by="ann"), ("ann", "stop")),
    (ChatHalted(cause="no key", remedy="set one"), ("septet", "an error stopped the work: no key: set one")),
    (ChatHalted(cause="no key"), ("septet", "an error stopped the work: no key")),
    (ChatContinued(budget=Budget()), ("person", "go on")),
    (BudgetReached(by="coder", why="too dear"), ("septet", "the coder was not asked: too dear")),
    (TurnOpened(speaker="coder"), ("", "")),
    (StepGranted(), ("", "")),
    (Terminated(summary="it works"), ("manager", "says that the task is resolved: it works")),
    (
        FactsChanged(by="coder", change=FactsChange(add=("it rains",), drop=("it is dry",))),
        ("coder", "remember: it rains\nforget: it is dry"),
    ),
    (SpeakerChosen(speaker="coder"), ("", "")),
    (MemberBriefed(member="coder", text="x"), ("", "")),
    (ModelAnswered(role="coder", answer=Answer(text="x")), ("coder", "x")),
    (ReplyRefused(role="coder", reason="no"), ("septet", "the coder's reply was refused: no")),
    (PersonSpoke(text="hello"), ("person", "hello")),
    (WorkAccepted(), ("person", "accepted as it is")),
    (PlanApproved(plan="p"), ("person", "approved")),
    (PlanApproved(plan="p", by="flag"), ("person", "approved (without asking)")),
    (PlanProposed(plan=PLAN), ("", "")),
    (PlanProposed(plan=PLAN, by="person"), ("person", "this plan:\n1. adds\n   check: file a\n")),
    (CheckChallenged(by="coder", item="P1", reason="no"), ("coder", "the check of P1 is wrong: no")),
    (VersionWritten(number=1, files=(FILE, FILE), tree="t"), ("coder", "version 1: a.py, a.py")),
    (VersionWritten(number=2, files=(FILE,), tree="t", found=True), ("person", "version 2: a.py")),
    (run("r", "run", RunResult(exit_code=0, stdout=" \n")), ("runner", "`python a.py` → exit 0")),
    (
        run("r", "run", RunResult(exit_code=1, stdout="5\n", stderr="why\n")),
        ("runner", "`python a.py` → exit 1\n\n```\n5\n```\n\n```\nwhy\n```"),
    ),
    (evidence(True), ("runner", "✓ P1 (file a): no")),
    (evidence(False), ("runner", "✗ P1 (file a): no")),
    (ReviewGiven(version=1, tree="t", verdict="accept"), ("reviewer", "")),
    (
        ReviewGiven(version=1, tree="t", verdict="revise", overruled="all checks passed"),
        ("reviewer", "verdict: revise\noverruled: all checks passed"),
    ),
    (DecisionRecorded(by="coder", what="wait", why="it rains"), ("coder", "decided: wait, because it rains")),
    (ExampleGiven(failure="f", code="c", source="docs"), ("exemplar", "c\n(from docs)")),
    (ExampleGiven(failure="f"), ("exemplar", "no example")),
    (RunStarted(id="r", purpose="run", command="c", tree="t"), ("", "")),
    (ToolCalled(id="1", by="coder", name="read", arguments="{}"), ("coder", "read {}")),
    (ToolAnswered(id="1", text="x", failed=True), ("septet", "✗ x")),
    (ToolAnswered(id="1", text="x", summary="read a.py"), ("septet", "read a.py")),
    (AnswerGiven(by="clerk", text="42", ground="certain"), ("clerk", "42")),
    (DataDescribed(path="d.csv", sha256="1", size=1, card="3 rows"), ("septet", "data: d.csv\n3 rows")),
    (SnapshotTaken(number=1, manifest="m", entries=1), ("", "")),
    (SnapshotTaken(number=2, manifest="m", entries=1, files=1, folder="/w"), ("", "")),
    (
        PackagesDecided(names=("x", "y"), allowed=True, always=True),
        ("person", "install x, y, and whatever else this chat will want"),
    ),
    (
        PackagesDecided(names=("x",), allowed=False, by="policy"),
        ("septet", "do not install x"),
    ),
    (PackagesDecided(names=("x",), allowed=True, by="flag"), ("person", "install x (said beforehand)")),
    (
        PackagesInstalled(installation=Installation(installed=("x",), failed=("y",), why="no", seconds=1.25)),
        ("runner", "installed x in 1.2 s\ncould not install y: no"),
    ),
    (PackagesInstalled(installation=Installation(failed=("y",), why="no")), (
        "runner", "could not install y: no",
    )),
    (BaseSurveyed(kind="empty", root="/p"), ("", "")),
    (BaseMoved(changed=(FileState(path="a.py"), FileState(path="b.py"))), (
        "person", "changed in the folder: a.py, b.py",
    )),
    (BaseMoved(changed=(FileState(path="a.py"),), conflicts=("a.py",)), (
        "person", "changed in the folder: a.py; in conflict with the team's change: a.py",
    )),
    (EnvironmentProbed(python="3.12"), ("septet", "programs run with Python 3.12")),
    (EnvironmentProbed(python="3.12", packages=("x", "y")), ("septet", "programs run with Python 3.12, x, y")),
    (delivered(), ("septet", "delivered: nothing had changed")),
    (delivered(WRITTEN, MERGED), ("septet", "delivered: a.py, b.py (merged)")),
    (replace(delivered(WRITTEN), undoes=1), ("septet", "taken back: a.py")),
    (replace(delivered(WRITTEN), branch="b"), ("septet", "committed to the branch b: a.py")),
    (
        replace(delivered(WRITTEN), patch="p.diff", unproven=("P1", "P2")),
        (
            "septet",
            "delivered: a.py; what could not be merged is in p.diff; the folder as it is now is not proven: P1; P2",
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "told"), TELLING)
def test_each_event_stands_in_the_transcript_in_these_words(event: Event, told: tuple[str, str]) -> None:
    assert speaker_and_text(*recorded(event)) == told


def test_the_first_look_at_a_folder_is_told_if_anything_was_found() -> None:
    looked = SnapshotTaken(number=1, manifest="m", entries=1)
    for found in (replace(looked, files=1), replace(looked, ignored=1), replace(looked, secrets=(".env",))):
        assert speaker_and_text(*recorded(found))[0] == "septet"


def test_a_chat_is_exported_as_a_document_as_plain_text_and_as_its_log() -> None:
    started = ChatStarted(goal="add", team=TEAMS["iterate"], workspace="/w")
    log = recorded(started, TurnOpened(speaker="coder"), PersonSpoke(text="hello"))
    assert export_chat(log, "txt") == (
        "[1970-01-01 00:00:01] person:\nadd\n\n[1970-01-01 00:00:03] person:\nhello\n\n"
    )
    assert export_chat(log, "md") == (
        "# c\n\n> add\n\n### person\n\nadd\n\n### person\n\nhello\n\n"
        "## Report\n\nunfinished, it was the coder's turn\n"
    )
    assert export_chat(log, "jsonl").count("\n") == 3


def named(name: str, *runs: RunFinished) -> str:
    return run_named("c", recorded(*runs), name).id


def test_a_run_is_found_by_the_beginning_of_its_name_and_without_one_the_newest_of_the_program() -> None:
    nothing = RunResult(exit_code=0)
    first, second, tests = (
        run("v1 run", "run", nothing),
        run("v2 run", "run", nothing),
        run("v2 run tests", "tests", nothing),
    )
    assert named(" ", first, second, tests) == "v2 run"
    assert named("", tests) == "v2 run tests"
    assert named("V1", first, second) == "v1 run"
    assert named("v2  run", second, tests) == "v2 run", "the whole name comes before longer ones"
    with pytest.raises(BadUsage) as refused:
        named("v2", first, second, tests)
    assert refused.value.cause == "'v2' matches 2 runs of 'c'"
    assert refused.value.remedy == "use one of 'v2 run', 'v2 run tests'"
    with pytest.raises(BadUsage) as refused:
        named("x" * 90, first)
    assert refused.value.cause == f"'c' has no run '{'x' * 80}'"
    assert refused.value.remedy == "it has 'v1 run'"
    with pytest.raises(BadUsage, match="nothing has run in 'c' yet"):
        named("v1")


@pytest.mark.parametrize(("count", "end"), [(12, "'r11'"), (13, "'r12' (the last 12 of 13)")])
def test_of_many_runs_the_last_twelve_are_named(count: int, end: str) -> None:
    runs = [run(f"r{number}", "run", RunResult(exit_code=0)) for number in range(count)]
    with pytest.raises(BadUsage) as refused:
        named("x", *runs)
    assert refused.value.remedy.endswith(end)
    assert refused.value.remedy.startswith(f"it has 'r{count - 12}', ")


async def test_a_runs_output_is_read_whole_where_it_was_kept_whole() -> None:
    blobs = MemoryBlobs()
    cut = RunResult(
        exit_code=1,
        stdout="cut",
        stderr="short",
        stdout_blob=await blobs.put(b"whole \xff"),
        stopped_by="time",
    )
    finished = replace(run("v1 check", "check", cut), about="P1")
    shown = run_output("c", finished, await read_streams(finished, blobs))
    assert (shown.chat, shown.run, shown.purpose, shown.command) == (
        "c",
        "v1 check",
        "check P1",
        "python a.py",
    )
    assert (shown.exit_code, shown.stopped_by) == (1, "time")
    assert (shown.stdout, shown.stderr) == ("whole \ufffd", "short")
    other = run("r", "run", RunResult(exit_code=0, stdout="out", stderr_blob=await blobs.put(b"err")))
    assert await read_streams(other, blobs) == (b"out", b"err")
