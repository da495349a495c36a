"""What a member is told of a command that it ran, of the checks, and of what it asks."""

import json

import pytest
from tools.projects import ProjectContext, project

from septet.domain.files import FileChange
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.team.questions import NO_ANSWER
from septet.tools.registry import ToolResult
from septet.tools.running import SHOWN, asking_tools, outcome, running_tools

pytestmark = pytest.mark.anyio
TOOLS = {one.name: one for one in (*running_tools(), *asking_tools())}


class Sandboxed(ProjectContext):
    """A context whose commands and checks end as a test says."""

    def __init__(self, result: RunResult, checked: ToolResult | None = None) -> None:
        super().__init__(project())
        self._result = result
        self._checked = checked
        self.ran: list[tuple[str, float]] = []

    async def run(self, command: str, seconds: float = 0) -> RunResult:
        self.ran.append((command, seconds))
        return self._result

    async def check(self) -> ToolResult:
        assert self._checked is not None
        return self._checked


async def told(context: Sandboxed, name: str, **arguments: object) -> ToolResult:
    result = await TOOLS[name].use(context, json.dumps(arguments))
    assert isinstance(result, ToolResult), result
    return result


async def test_the_end_the_files_and_both_streams_are_told() -> None:
    changes = (
        FileChange(path="a.txt", kind="new"),
        FileChange(path="b.txt", kind="deleted"),
        FileChange(path="c.txt", kind="changed"),
    )
    result = RunResult(exit_code=0, stdout="out\n\n", stderr="  \n", seconds=1.25, changes=changes)
    context = Sandboxed(result)
    said = await told(context, "run", command="  ls -l ", seconds=3)
    assert said == ToolResult(
        text="exit 0 after 1.2 s\nmade or changed: a.txt, c.txt\nstdout:\nout", summary="run ls -l → exit 0"
    )
    assert context.ran == [("ls -l", 3.0)]
    failed = await told(Sandboxed(RunResult(exit_code=2, stderr="no\n")), "run", command="x" * 100)
    assert failed == ToolResult(
        text="exit 2 after 0.0 s\nstderr:\nno", summary=f"run {'x' * 80} → exit 2", failed=True
    )


async def test_twenty_files_and_the_ends_of_long_output_are_told() -> None:
    changes = tuple(FileChange(path=f"{number}.txt", kind="new") for number in range(21))
    long = "a" * SHOWN + "end"
    said = await told(Sandboxed(RunResult(exit_code=0, stdout=long, changes=changes)), "run", command="x")
    assert "19.txt\n" in said.text
    assert "20.txt" not in said.text
    assert said.text.endswith("end")
    assert len(said.text) < SHOWN + 400


async def test_an_empty_command_is_not_run() -> None:
    context = Sandboxed(RunResult(exit_code=0))
    for arguments in ('{"command": " "}', '{"command": "x", "seconds": -1}'):
        assert isinstance(await TOOLS["run"].use(context, arguments), Refusal)
    assert context.ran == []


@pytest.mark.parametrize(
    ("result", "ending"),
    [
        (RunResult(exit_code=0, stdout="== 3 passed in 0.1s ==\n"), "3 passed"),
        (
            RunResult(exit_code=1, stdout="1 passed in 1s\n1 failed, 2 passed in 0.12s\n"),
            "1 failed, 2 passed",
        ),
        (RunResult(exit_code=1, stdout="it has 3 passed in 0.1s"), "exit 1"),
        (RunResult(exit_code=137, stopped_by="time", stdout="3 passed in 0.1s"), None),
    ],
)
def test_a_run_of_tests_is_told_by_their_counts(result: RunResult, ending: str | None) -> None:
    assert outcome(result) == (ending or result.ending)


@pytest.mark.parametrize(
    ("ready", "failed", "handed_in"), [(True, False, True), (True, True, False), (False, False, False)]
)
async def test_who_is_ready_hands_in_if_all_is_met(ready: bool, failed: bool, handed_in: bool) -> None:
    seen = ToolResult(text="seen", summary="sum", failed=failed)
    said = await told(Sandboxed(RunResult(exit_code=0), seen), "check", ready=ready)
    text = "seen\nYour files are handed in." if handed_in else "seen"
    assert said == ToolResult(text=text, summary="check → sum", failed=failed, ready=handed_in)
    assert not (await told(Sandboxed(RunResult(exit_code=0), seen), "check")).ready


async def test_where_nobody_is_asked_the_tool_says_so() -> None:
    context = Sandboxed(RunResult(exit_code=0))
    assert await TOOLS["ask"].use(context, '{"question": "Tabs?"}') == Refusal(reason=NO_ANSWER)
    assert TOOLS["ask"].asks
    assert [(one.name, one.roles) for one in TOOLS.values()] == [
        ("run", ("coder",)), ("check", ("coder",)), ("ask", ("planner", "coder")),
    ]  # fmt: skip
    for question in ("", "x" * 1001):
        said = await TOOLS["ask"].use(context, json.dumps({"question": question}))
        assert isinstance(said, Refusal)
        assert said.reason.startswith("ask cannot be called like that")
