"""What each kind of check says of a run: whether it holds, by which run, and in which words."""

import zlib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from struct import pack

import pytest
from msgspec.structs import replace
from team.states import STARTED, chat, ran, version

from septet.agents import checks
from septet.agents.checks import (
    CheckContext,
    CheckKind,
    Observation,
    add_check,
    find_evidence,
    is_folder,
    is_new,
    reports_by_file,
    unchanged_text,
)
from septet.domain import plans
from septet.domain.events import Event, EvidenceFound, PlanApproved, PlanProposed, RunFinished, VersionWritten
from septet.domain.files import FileChange, FileRef
from septet.domain.plans import (
    Check,
    CommandSucceeds,
    CustomCheck,
    ExampleHolds,
    FileExists,
    Judged,
    Mends,
    PictureExists,
    Plan,
    Requirement,
    Serves,
    ShowsWindow,
    TestsPass,
    plan_digest,
)
from septet.domain.runs import RunResult
from septet.domain.state import State
from septet.stores.memory import MemoryBlobs
from septet.team import evidence as team_evidence
from septet.team.acceptance import OUTCOME_MARK
from septet.workspace.files import Workspace

pytestmark = pytest.mark.anyio


class Kept:
    """Files of a version and its runs, all as blobs; nothing was there before the chat."""

    def __init__(self, folder: Path) -> None:
        self.blobs = MemoryBlobs()
        self.workspace = Workspace(folder)

    async def base_texts(self, paths: Iterable[str]) -> dict[str, str]:
        return {}


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def stated(check: Check) -> list[Event]:
    plan = Plan(items=(Requirement(id="P1", text="it works", check=check),), run="python add.py")
    return [STARTED, PlanProposed(plan=plan), PlanApproved(plan=plan_digest(plan))]


async def written(kept: Kept, **texts: str) -> VersionWritten:
    files = [
        FileRef(path=path, sha256=await kept.blobs.put(text.encode()), size=len(text))
        for path, text in texts.items()
    ]
    return VersionWritten(number=1, files=tuple(files), tree="tree")


def run(purpose: str, about: str = "", code: int = 0, **result: object) -> RunFinished:
    title = f"{purpose} {about}".strip()
    return RunFinished(
        id=f"v1 {title}",
        purpose=purpose,  # pyright: ignore[reportArgumentType]  # one of the purposes
        about=about,
        command=title,
        tree="tree",
        result=RunResult(exit_code=code, **result),  # pyright: ignore[reportArgumentType]  # fields of a result
    )


async def evidence(
    kept: Kept, check: Check, *events: Event, texts: dict[str, str] | None = None
) -> EvidenceFound:
    state = chat([*stated(check), await written(kept, **(texts or {"add.py": "x = 1\n"})), *events])
    return await find_evidence(state, state.plan.items[0], kept)


def told(found: EvidenceFound) -> tuple[bool, str, str]:
    return found.passed, found.detail, found.run


COMMAND = CommandSucceeds(command="python add.py 2 3", prints="5")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], (False, "was not run", "")),
        ([run("check", "P1", 1)], (False, "exit 1", "v1 check P1")),
        ([run("check", "P1", stdout="6\n")], (False, "does not print '5'", "v1 check P1")),
        ([run("check", "P1", stdout="5\n")], (True, "exit 0, prints '5'", "v1 check P1")),
        (
            [run("check", "P1", stdout="5\n"), run("hollow check", "P1", stdout="5\n")],
            (False, "passes without a working program, so it proves nothing", "v1 check P1"),
        ),
        (
            [run("check", "P1", stdout="5\n"), run("hollow check", "P1", 1)],
            (True, "exit 0, prints '5'", "v1 check P1"),
        ),
        (
            [
                run("check", "P1", stdout="5\n"),
                run("hollow check", "P1", stdout="5\n"),
                run("check on base", "P1", 1),
            ],
            (True, "exit 0, prints '5', also with empty functions", "v1 check P1"),
        ),
        (
            [
                run("check", "P1", stdout="5\n"),
                run("hollow check", "P1", stdout="5\n"),
                run("check on base", "P1", stdout="5\n"),
            ],
            (False, "passes without a working program, so it proves nothing", "v1 check P1"),
        ),
    ],
)
async def test_a_command_holds_by_its_output_and_not_without_a_program(
    kept: Kept, events: Sequence[Event], expected: tuple[bool, str, str]
) -> None:
    found = await evidence(kept, COMMAND, *events)
    assert told(found) == expected
    assert found.judged == ("also with" in found.detail)
    assert (found.item, found.check, found.tree) == ("P1", COMMAND, "tree")


async def test_a_command_that_prints_nothing_in_particular_holds_by_its_end(kept: Kept) -> None:
    found = await evidence(kept, CommandSucceeds(command="true"), run("check", "P1"))
    assert told(found) == (True, "exit 0", "v1 check P1")


async def test_what_held_before_the_change_is_said(kept: Kept) -> None:
    both = [run("check", "P1", stdout="5\n"), run("check on base", "P1", stdout="5\n")]
    assert (await evidence(kept, COMMAND, *both)).held_before
    assert not (await evidence(kept, COMMAND, both[0])).held_before
    assert not (await evidence(kept, COMMAND, both[0], run("check on base", "P1"))).held_before


async def test_a_text_that_stands_in_the_program_is_noticed(kept: Kept) -> None:
    good = run("check", "P1", stdout="forty-two\n")
    check = CommandSucceeds(command="python add.py 2 3", prints="forty-two")
    literal = {"add.py": "print('forty-two')\n"}
    assert (await evidence(kept, check, good, texts=literal)).written
    assert not (await evidence(kept, check, good)).written
    assert not (await evidence(kept, check, run("check", "P1", 1), texts=literal)).written
    alone = CommandSucceeds(command="python add.py", prints="forty-two")
    assert not (await evidence(kept, alone, good, texts=literal)).written


HELD = replace(COMMAND, held=True)


async def test_a_failure_of_what_is_held_back_is_told_without_its_input_at_first(kept: Kept) -> None:
    assert told(await evidence(kept, HELD)) == (False, "was not run", "")
    first = await evidence(kept, HELD, run("check", "P1", 1))
    assert (
        told(first) == (False, "a request that is held back fails", "v1 check P1")
        or "held back fails" in first.detail
    )
    assert "2 3" not in first.detail
    state = chat([*stated(HELD), await written(kept, **{"add.py": "x\n"}), run("check", "P1", 1), first])
    again = replace(state, work=replace(state.work, failed_before=frozenset({"P1"})))
    later = await find_evidence(again, state.plan.items[0], kept)
    assert later.detail == "`python add.py 2 3` exit 1"
    good = await evidence(kept, HELD, run("check", "P1", stdout="5\n"))
    assert good.detail == "gives what is wanted"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"code": 0}, (True, "answers, holds 'hello'")),
        ({"code": 1}, (False, "exit 1")),
        ({"code": 1, "stdout": "HTTP 200 OK\nbye\n"}, (False, "the answer does not hold 'hello'")),
        (
            {"code": 1, "stdout": "HTTP 200 OK\nHTTP 404 Not Found\n"},
            (False, "answers with HTTP 404 Not Found"),
        ),
        ({"code": 1, "stdout": "it said HTTP 200 OK\n"}, (False, "exit 1")),
    ],
)
async def test_a_server_is_judged_by_our_own_request(
    kept: Kept, result: dict[str, object], expected: tuple[bool, str]
) -> None:
    check = Serves(path="/", prints="hello")
    assert told(await evidence(kept, check)) == (False, "was not run", "")
    found = await evidence(kept, check, run("check", "P1", **result))  # pyright: ignore[reportArgumentType]  # as above
    assert told(found) == (*expected, "v1 check P1")
    plain = await evidence(kept, Serves(path="/"), run("check", "P1"))
    assert plain.detail == "answers"


async def test_a_file_is_there_if_the_version_or_its_run_made_it(kept: Kept) -> None:
    check = FileExists(path="out.txt")
    assert told(await evidence(kept, check)) == (False, "no run made it", "")
    made = FileChange(path="out.txt", kind="new", size=7, sha256="0" * 64)
    found = await evidence(kept, check, run("run", changes=(made,)))
    assert told(found) == (True, "7 bytes", "v1 run")
    empty = replace(made, size=0)
    assert told(await evidence(kept, check, run("run", changes=(empty,)))) == (False, "it is empty", "")
    gone = replace(made, kind="deleted")
    assert not (await evidence(kept, check, run("run", changes=(gone,)))).passed
    twice = await evidence(
        kept, check, run("run", changes=(made,)), run("check", "P9", changes=(replace(made, size=1),))
    )
    assert told(twice) == (True, "1 byte", "v1 check P9")
    own = await evidence(kept, check, texts={"out.txt": "abc"})
    assert told(own) == (True, "3 bytes", "")


def png() -> bytes:
    """Two pixels of different colours."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return pack(">I", len(body)) + kind + body + pack(">I", zlib.crc32(kind + body))

    size = 40
    rows = b"".join(b"\0" + bytes([n % 251 for n in range(at, at + size * 3)]) for at in range(size))
    head = pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def test_a_picture_is_looked_at(kept: Kept) -> None:
    check, content = PictureExists(path="p.png"), png()
    assert told(await evidence(kept, check)) == (False, "no run made it", "")
    await kept.blobs.put(content)
    await kept.blobs.put(b"no picture")
    for data, passed in ((content, True), (b"no picture", False)):
        made = FileChange(path="p.png", kind="new", size=len(data), sha256=sha256(data).hexdigest())
        found = await evidence(kept, check, run("run", changes=(made,)))
        assert (found.passed, found.run) == (passed, "v1 run")
        assert found.detail
    large = FileChange(path="p.png", kind="new", size=5)
    unknown = await evidence(kept, check, run("run", changes=(large,)))
    assert told(unknown) == (False, "it is too big to look at", "")


async def test_a_window_needs_a_run_on_a_screen_that_ended_well(kept: Kept) -> None:
    assert told(await evidence(kept, ShowsWindow())) == (False, "the program was not run on a screen", "")
    plain = await evidence(kept, ShowsWindow(), run("run"))
    assert told(plain) == (False, "the program was not run on a screen", "")
    shown = replace(run("run", "", 1), mode="screen")
    assert told(await evidence(kept, ShowsWindow(), shown)) == (False, "exit 1", "v1 run")
    blank = replace(run("run"), mode="screen")
    assert told(await evidence(kept, ShowsWindow(), blank)) == (False, "no run made it", "")


async def test_what_a_machine_cannot_check_needs_a_judgement(kept: Kept) -> None:
    assert told(await evidence(kept, Judged())) == (False, "needs a judgement", "")


async def test_a_kind_of_the_persons_own_is_asked_with_its_argument(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(context: CheckContext, argument: str) -> Observation:
        contents = [await context.content(path) for path in ("add.py", "none.py")]
        return Observation(holds=argument == "x", detail=f"{argument} {contents}")

    kinds: dict[str, CheckKind] = {}
    monkeypatch.setattr(plans, "CUSTOM_CHECKS", kinds)
    monkeypatch.setattr(checks, "CUSTOM_CHECKS", kinds)
    unknown = await evidence(kept, CustomCheck(kind="mine", argument="x"))
    assert told(unknown) == (False, "no kind of check 'mine' is installed here", "")
    kind = CheckKind(name="mine", form="mine TEXT", look=look)
    assert add_check(kind) is kind
    known = await evidence(kept, CustomCheck(kind="mine", argument="x"))
    assert told(known) == (True, "x [b'x = 1\\n', None]", "")


@pytest.mark.parametrize(("same", "passed", "text"), [
    (1, 1, "passes"), (2, 2, "all pass"), (1, 3, "1 of them passes"), (2, 3, "2 of them pass"),
])  # fmt: skip
def test_how_many_pass_anyway_is_said(same: int, passed: int, text: str) -> None:
    assert unchanged_text(same, passed) == text


@pytest.mark.parametrize(
    ("deed", "new"),
    [
        ("a.py:1 sets trace", False),
        ("a.py:2 sets trace", True),
        ("a.py:3 sets trace", True),
        ("a.py: sets trace", True),
        ("b.py:1 sets trace", False),
        ("c.py:1 sets trace", True),
    ],
)
def test_a_deed_is_new_if_its_line_was_not_there_before(deed: str, new: bool) -> None:
    texts = {"a.py": "  old()\nnew()\n", "c.py": "x\n"}
    before = {"a.py": "first()\nold()\n", "b.py": "old()\n"}
    assert is_new(deed, texts, before) is new


async def test_tests_hold_if_all_of_them_passed_and_a_mend_needs_a_base(kept: Kept) -> None:
    tests = TestsPass(target="test_add.py")
    state = chat([*stated(tests), *version(1, "a")[1:], *ran(1, "a", green=False)[1:]])
    found = await find_evidence(
        replace(state, work=replace(state.work, evidence={})), state.plan.items[0], kept
    )
    assert (found.passed, found.run) == (False, "v1 tests")
    none = await evidence(kept, tests)
    assert told(none) == (False, "was not run", "")
    mends = await evidence(kept, Mends(target="test_add.py::test_sum"))
    assert told(mends) == (False, "there is no base on which it could have failed", "")


def test_a_suite_that_names_files_is_selected_by_them() -> None:
    state: State = chat(
        [*stated(TestsPass(target="test_add.py")), *version(1, "a")[1:], *ran(1, "a", green=True)[1:]]
    )
    report = team_evidence.tests_of(state)
    assert reports_by_file(report, "test_add.py::test_sum")
    assert not reports_by_file(report, "tests/a.test.js")
    assert not reports_by_file(report, "tests")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("=5", (True, "gives the value")),
        ("=6", (False, "add(2, 3) gives 6, not 5")),
        ("!ValueError no", (False, "add(2, 3) raises ValueError no, not 5")),
    ],
)
async def test_an_example_is_compared_as_data(kept: Kept, outcome: str, expected: tuple[bool, str]) -> None:
    check = ExampleHolds(call="add(2, 3)", value="5")
    assert told(await evidence(kept, check)) == (False, "was not run", "")
    found = await evidence(kept, check, run("check", "P1", stdout=f"{OUTCOME_MARK}{outcome}\n"))
    assert told(found) == (*expected, "v1 check P1")


@pytest.mark.parametrize(
    ("target", "folder"), [("tests", True), ("npm test", True), ("a.py", False), ("a.py::test_x", False)]
)
def test_a_target_is_one_file_or_a_whole_folder(target: str, folder: bool) -> None:
    assert is_folder(target) is folder
