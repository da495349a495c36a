"""The person at the terminal: asked on stderr, so that stdout stays the result's."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import click

from septet.cli.output import notify
from septet.domain.plans import Refusal, parse_plan
from septet.errors import Interrupted, NeedsPerson
from septet.team.questions import Question

PROMPTS = {
    "plan": "approve the plan [Enter], e edits it, or say what to change (q quits): ",
    "review": "try it, then say what you saw; [Enter] goes on, accept takes it as it is, q quits: ",
    "packages": "install it? [Enter] yes · always · n no · q quit: ",
    "step": "[Enter] do · c continue · q quit, or say something: ",
}
NEXT = "ask on, or exit (Ctrl-D): "
INTERRUPTED = "interrupted: [Enter] goes on · say what shall be different · q quits (it can be resumed): "
ENDS = {"exit", "quit", "q", "bye"}
Line = Callable[[str], Awaitable[str]]
HandedOver = Callable[[], AbstractAsyncContextManager[object]]
WELCOME = "What python creation would you like? Type below:"


async def ask_line(prompt: str, typed: str = "") -> str:
    """A line from the person, who may have begun to type it."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
    try:
        return to_utf8(await session.prompt_async(prompt, default=typed))
    except EOFError as error:
        raise terminal_closed() from error
    except KeyboardInterrupt as error:  # in a task of the event loop it would end as a traceback
        raise interrupted_error() from error


def terminal_closed() -> NeedsPerson:
    return NeedsPerson("the terminal was closed")


def interrupted_error() -> Interrupted:
    return Interrupted("interrupted")


def to_utf8(text: str) -> str:
    """What was typed as text of the log, which is UTF-8: bytes that are none become question marks."""
    return text.encode(errors="replace").decode()


async def ask_next() -> str | None:
    """The next question of a talk; None when the person has had enough."""
    said = ""
    while not said:
        try:
            said = (await ask_line(NEXT)).strip()
        except (NeedsPerson, Interrupted):
            return None
    return None if said.lower() in ENDS else said


async def ask_after_interrupt(typed: str) -> str | None:
    """What to do after Ctrl-C: go on (nothing), go on with these words, or leave (None)."""
    try:
        said = (await ask_line(INTERRUPTED, typed)).strip()
    except (NeedsPerson, Interrupted):
        return None
    return None if said.lower() in ENDS else said


def ask_by(line: Line = ask_line, handed_over: HandedOver = nullcontext):
    """Ask by `line`; while the terminal is `handed_over`, others may write on it."""

    async def ask(question: Question) -> str:
        if question.kind == "review":
            async with handed_over():
                notify(f"septet: {question.text}")
        while True:
            said = await line(PROMPTS[question.kind])
            if question.kind != "plan" or said.strip().lower() not in ("e", "edit"):
                return said
            async with handed_over():
                edited = edit_plan(question.text)
            if edited:
                return edited

    return ask


def edit_plan(text: str) -> str | None:
    """The plan as the person's editor leaves it; None where it is unchanged or no plan any more."""
    try:
        edited = click.edit(text, extension=".txt")
    except click.ClickException as error:
        notify(f"septet: the editor failed ({error.format_message()}): set EDITOR")
        return None
    plan = parse_plan(edited or text)
    if isinstance(plan, Refusal):
        notify(f"septet: that is no plan any more ({plan.reason}): edit it again")
        return None
    return edited if edited != text else None


def at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
