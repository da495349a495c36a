"""`septet` without arguments: a menu to continue, edit, run or delete a project, or to start a new one."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import anyio
import click

from septet.cli.options import Options, OutputOptions, run_options
from septet.cli.output import confirm, notify, put_bytes
from septet.errors import BadUsage

MAIN_CHOICES = "a number opens a project · n new · o options · q quit"
PROJECT_CHOICES = "c continue · e edit (say what to change) · r run it · d delete · b back"
OPTION_CHOICES = "s step mode · v more output · q less output · m model · b back"
MARGIN = len("  1  ")
MOST = 100
"""Chats on the menu."""
Projects = list[tuple[str, str]]


@click.command(epilog="Example: septet")
@run_options
def menu(options: Options) -> int:
    """Show the menu of projects: new, continue, edit, run, delete, options."""
    if not sys.stdin.isatty():
        raise BadUsage("the menu needs a terminal", "use septet list, resume, run and rm")
    if not anyio.run(projects):
        return new(options)
    while True:
        known = anyio.run(projects)
        show_menu(known)
        choice = ask_person(MAIN_CHOICES, at_end="q")
        if choice == "q":
            return 0
        if choice == "o":
            options = change_options(options)
        else:
            try_action(partial(open_choice, choice, known, options))


def try_action(action: Callable[[], object]) -> None:
    """Run the action; report an error in one line and return to the menu."""
    from septet.cli.errors import explanation

    try:
        action()
    except (SystemExit, click.Abort):
        return
    except Exception as error:  # no error may end the menu
        notify(f"septet: {explanation(error)[0]}")


def open_choice(choice: str, known: Projects, options: Options) -> None:
    if choice == "n":
        new(options)
    elif choice.isdecimal() and 1 <= int(choice) <= len(known):
        open_project(known[int(choice) - 1][0], options)
    elif choice:
        notify(f"'{choice}' is not one of the choices")


async def projects() -> Projects:
    """Return names and lines of the newest chats, most recently changed first."""
    from septet.chat.summaries import Summaries
    from septet.cli.tables import chat_lines, columns_of, row_of
    from septet.wiring.session import open_session

    async with open_session() as session:
        rows = [row_of(summary) for summary in await Summaries(session.store, session.index).newest(MOST)]
        lines = chat_lines(rows, max(0, columns_of(sys.stderr) - MARGIN)).splitlines()
        return [(row.chat, line) for row, line in zip(rows, lines, strict=True)]


def show_menu(known: Projects) -> None:
    for number, (_, line) in enumerate(known, start=1):
        notify(f"{number:>3}  {line}")


def ask_person(prompt: str, at_end: str | None = None) -> str:
    """Ask the person for a line; if the terminal is closed, return `at_end`."""
    try:
        return str(click.prompt(prompt, default="", show_default=False, err=True)).strip()
    except click.Abort:
        if at_end is None:
            raise
        return at_end


def open_project(chat: str, options: Options) -> None:
    """Offer the actions for one project."""
    actions: dict[str, Callable[[], object]] = {
        "c": lambda: resume_selected(chat, None, options),
        "e": lambda: resume_selected(chat, ask_person("what should change?"), options),
        "r": lambda: anyio.run(run_program, chat, options),
        "d": lambda: delete(chat),
    }
    choice = ask_person(f"{chat}: {PROJECT_CHOICES}")
    if choice in actions:
        actions[choice]()


def new(options: Options) -> int:
    from septet.cli.start import Start, begin
    from septet.cli.watch import run_chat
    from septet.ways.table import TEAMS

    return run_chat(begin(None, TEAMS["iterate"], Start(), options), options)


def resume_selected(chat: str, message: str | None, options: Options) -> int:
    from septet.cli.start import resume_chat
    from septet.cli.watch import run_chat

    return run_chat(resume_chat(chat, message or None, options), options)


async def run_program(chat: str, options: Options) -> None:
    """Run the program as the runner does, and show its output."""
    from septet.wiring.session import open_session
    from septet.wiring.trial import planned_command, try_newest

    async with open_session() as session:
        result = await try_newest(session, chat, (), options.programs.unsafe_local)
        command = planned_command(await session.state(chat))
    put_bytes(result.stdout.encode())
    notify(f"{result.stderr}{command}: {result.ending}")


def delete(chat: str) -> None:
    from septet.cli.chats import in_session
    from septet.wiring.upkeep import remove

    if confirm(f"delete {chat} for good?"):
        in_session(lambda session: remove(session, chat))


def change_options(options: Options) -> Options:
    """Show the options and let the person change one."""
    model, consent, output = options.model, options.consent, options.output
    step = "on" if consent.step else "off"
    notify(f"step mode {step} · output: {verbosity(output)} · model {model.model or 'chosen for you'}")
    match ask_person(OPTION_CHOICES):
        case "s":
            return replace(options, consent=replace(consent, step=not consent.step))
        case "v":
            return replace(options, output=replace(output, verbose=True, quiet=False))
        case "q":
            return replace(options, output=replace(output, verbose=False, quiet=True))
        case "m":
            return replace(options, model=replace(model, model=ask_person("model")))
        case _:
            return options


def verbosity(output: OutputOptions) -> str:
    return "all" if output.verbose else "only results" if output.quiet else "progress"
