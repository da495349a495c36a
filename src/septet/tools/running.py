"""Tools that run: a command in the sandbox, the plan's checks (no evidence yet), and a question to the person."""

import re
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from septet.common.text import cut_middle
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.team.questions import NO_ANSWER
from septet.tools.registry import Tool, ToolContext, ToolResult, tool_of_function

SHOWN = 3_500
"""Characters of each stream; the end, where errors are, is never cut."""
RUNNERS = ("coder",)
ASKERS = ("planner", "coder")


async def run(
    context: ToolContext,
    command: Annotated[
        str, Meta(description="As for a shell, e.g. python -m pytest -q tests/test_a.py -k name")
    ],
    seconds: Annotated[float, Meta(description="How long it may take; 0 for the usual limit.", ge=0)] = 0,
) -> ToolResult | Refusal:
    """Run a command in the sandbox, in the workspace with your edits. Files that it makes or changes are not kept:
    only edit, write and delete change the program.
    """
    if not command.strip():
        return Refusal(reason="the command is empty")
    result = await context.run(command.strip(), seconds)
    streams = [("stdout", result.stdout), ("stderr", result.stderr)]
    shown = [f"{name}:\n{cut_middle(text, SHOWN).rstrip()}" for name, text in streams if text.strip()]
    made = [change.path for change in result.changes if change.kind != "deleted"][:20]
    left = [f"made or changed: {', '.join(made)}"] if made else []
    text = "\n".join([f"{result.ending} after {result.seconds:.1f} s", *left, *shown])
    return ToolResult(
        text=text, summary=f"run {command.strip()[:80]} → {outcome(result)}", failed=not result.succeeded
    )


PYTEST_ENDS = re.compile(
    r"^[= ]*(\d+ (?:passed|failed|skipped|errors?|deselected)\b[^\n]*?) in [\d.]+s", re.MULTILINE
)


def outcome(result: RunResult) -> str:
    """Summarise how the run ended; with tests, their counts."""
    counts = PYTEST_ENDS.findall(result.stdout)
    return counts[-1] if counts and result.stopped_by is None else result.ending


async def check(
    context: ToolContext,
    ready: Annotated[
        bool, Meta(description="You are done: if all is met, your files are handed in without another reply.")
    ] = False,
) -> ToolResult:
    """Run the program, its tests and the plan's checks on the files as your calls so far have left them."""
    seen = await context.check()
    handed_in = ready and not seen.failed
    text = f"{seen.text}\nYour files are handed in." if handed_in else seen.text
    return ToolResult(text=text, summary=f"check → {seen.summary}", failed=seen.failed, ready=handed_in)


def ask(
    context: ToolContext,
    question: Annotated[
        str,
        Meta(min_length=1, max_length=1000, description="One question, with the answers you can think of."),
    ],
) -> Refusal:
    """Ask what neither the goal, the plan nor the files say, where the answer changes what is built. The person
    answers or, where the person may not be asked, the planner.
    """
    return Refusal(reason=NO_ANSWER)  # the tool loop has the person answer, where one may be asked


def running_tools() -> list[Tool]:
    checking = replace(tool_of_function(check, roles=RUNNERS), needs_edits=True)
    return [tool_of_function(run, roles=RUNNERS), checking]


def asking_tools() -> list[Tool]:
    return [replace(tool_of_function(ask, roles=ASKERS), asks=True)]
