"""Asks the person at the terminal, on stderr, so that stdout carries only the result."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import click

from septet.agents.person import Ask
from septet.cli.output import notify, ring
from septet.domain.plans import Refusal, parse_plan
from septet.errors import Interrupted, NeedsPerson
from septet.team.questions import SKIP_WORDS, Question

PROMPTS = {
    "plan": "approve the plan [Enter], e edits it, or say what to change (q quits): ",
    "review": "try it, then say what you saw; [Enter] continues, accept accepts it as it is, q quits: ",
    "packages": "install it? [Enter] yes · always · n no · q quit: ",
    "ask": "your answer ([Enter] leaves it to the team, q quits): ",
    "step": "[Enter] do · e edit · {skip}c continue · q quit, or type a message: ",
}
SKIP = "s skip · "
NEXT_QUESTION = "ask again, or exit (Ctrl-D): "
INTERRUPTED = "interrupted: [Enter] continues · type what should change · q quits (you can resume): "
EXIT_WORDS = {"exit", "quit", "q", "bye"}
AskLine = Callable[[str], Awaitable[str]]
ReleaseTerminal = Callable[[], AbstractAsyncContextManager[object]]
WELCOME = "What python creation would you like? Type below:"


async def ask_line(prompt: str, initial: str = "") -> str:
    """Ask the person for a line; `initial` is what they have already typed."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.output import create_output

    session: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
    try:
        return to_utf8(await session.prompt_async(prompt, default=initial))
    except EOFError as error:
        raise terminal_closed() from error
    except KeyboardInterrupt as error:  # in a task of the event loop it would end as a traceback
        raise interrupted_error() from error


def terminal_closed() -> NeedsPerson:
    return NeedsPerson("the terminal was closed")


def interrupted_error() -> Interrupted:
    return Interrupted("interrupted")


def to_utf8(text: str) -> str:
    """Replace what is not valid UTF-8 by question marks, since the log is UTF-8."""
    return text.encode(errors="replace").decode()


async def ask_next() -> str | None:
    """Ask for the next question of a conversation; None if the person leaves."""
    text = ""
    while not text:
        try:
            text = (await ask_line(NEXT_QUESTION)).strip()
        except (NeedsPerson, Interrupted):
            return None
    return None if text.lower() in EXIT_WORDS else text


async def ask_after_interrupt(unsent_text: str) -> str | None:
    """Ask what to do after Ctrl-C: continue (""), continue with this message, or leave (None)."""
    try:
        text = (await ask_line(INTERRUPTED, unsent_text)).strip()
    except (NeedsPerson, Interrupted):
        return None
    return None if text.lower() in EXIT_WORDS else text


def make_ask(read_line: AskLine = ask_line, release_terminal: ReleaseTerminal = nullcontext):
    """Return a function that asks with `read_line`; inside `release_terminal` other programs may use the terminal."""

    async def ask(question: Question) -> str:
        if question.kind in ("review", "ask", "step"):
            async with release_terminal():
                notify(f"septet: {question.text}")
        if question.note:
            async with release_terminal():
                notify(f"septet: {question.note}")
        prompt = PROMPTS[question.kind].format(skip=SKIP if question.can_skip else "")
        while True:
            text = await read_line(prompt)
            word = text.strip().lower()
            if question.kind == "step" and word in SKIP_WORDS and not question.can_skip:
                async with release_terminal():
                    notify(f"septet: only a review can be skipped; {question.text}")
                continue
            if question.kind not in ("plan", "step") or word not in ("e", "edit"):
                return text
            async with release_terminal():
                edited = edit_plan(question.text) if question.kind == "plan" else edit_files(question.files)
            if edited:
                return edited

    return ask


def with_bell(ask: Ask) -> Ask:
    """Ring the terminal's bell before each question."""

    async def ask_aloud(question: Question) -> str:
        ring()
        return await ask(question)

    return ask_aloud


def edit_files(files: tuple[str, ...]) -> None:
    """Open the newest version's files in the person's editor; the team finds what was changed."""
    if not files:
        notify("septet: there is nothing to edit here yet: type what should change instead")
        return
    try:
        click.edit(filename=files)
    except click.ClickException as error:
        notify(f"septet: the editor failed ({error.format_message()}): set EDITOR")


def edit_plan(text: str) -> str | None:
    """Open the plan in the person's editor; None if it is unchanged or no longer a valid plan."""
    try:
        edited = click.edit(text, extension=".txt")
    except click.ClickException as error:
        notify(f"septet: the editor failed ({error.format_message()}): set EDITOR")
        return None
    plan = parse_plan(edited or text)
    if isinstance(plan, Refusal):
        notify(f"septet: this is no longer a valid plan ({plan.reason}): edit it again")
        return None
    return edited if edited != text else None


def at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
