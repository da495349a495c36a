"""`septet` on a terminal with projects: choose one and continue, edit, run or delete it, or begin a new one."""

import dataclasses
import sys
from collections.abc import Callable
from functools import partial

import anyio
import click

from septet.cli.options import Options, run_options
from septet.cli.output import confirm, notify, put_bytes
from septet.errors import BadUsage

TOP = "a number opens a project · n new · o options · q quit"
PROJECT = "c continue · e edit (say what to change) · r run it · d delete · b back"
OPTIONS = "s step mode · v say more · q say less · m model · b back"
MARGIN = len("  1  ")
Projects = list[tuple[str, str]]


@click.command(epilog="Example: septet")
@run_options
def menu(options: Options) -> int:
    """Projects on a menu: new, continue, edit, run, delete, options."""
    if not sys.stdin.isatty():
        raise BadUsage("the menu needs a terminal", "use septet list, resume, run and rm")
    if not anyio.run(projects):
        return new(options)
    while True:
        known = anyio.run(projects)
        show(known)
        choice = asked(TOP, at_end="q")
        if choice == "q":
            return 0
        if choice == "o":
            options = changed(options)
        else:
            attempt(partial(chosen, choice, known, options))


def attempt(deed: Callable[[], object]) -> None:
    """What goes wrong is said in a line; the menu stays."""
    from septet.cli.errors import explanation

    try:
        deed()
    except (SystemExit, click.Abort):
        return
    except Exception as error:  # the menu is not the place to end for any of them
        notify(f"septet: {explanation(error)[0]}")


def chosen(choice: str, known: Projects, options: Options) -> None:
    if choice == "n":
        new(options)
    elif choice.isdecimal() and 1 <= int(choice) <= len(known):
        opened(known[int(choice) - 1][0], options)
    elif choice:
        notify(f"'{choice}' is none of that")


async def projects() -> Projects:
    """Names and lines of all chats, the one that moved last first."""
    from septet.cli.tables import chat_lines, columns_of, row_of
    from septet.wiring.session import open_session

    async with open_session() as session:
        rows = [row_of(head, await session.state(head.chat)) for head in await session.store.chats()]
        lines = chat_lines(rows, max(0, columns_of(sys.stderr) - MARGIN)).splitlines()
        return [(row.chat, line) for row, line in zip(rows, lines, strict=True)]


def show(known: Projects) -> None:
    for number, (_, line) in enumerate(known, start=1):
        notify(f"{number:>3}  {line}")


def asked(prompt: str, at_end: str | None = None) -> str:
    """What the person types; `at_end` stands for a closed terminal."""
    try:
        return str(click.prompt(prompt, default="", show_default=False, err=True)).strip()
    except click.Abort:
        if at_end is None:
            raise
        return at_end


def opened(chat: str, options: Options) -> None:
    """What can be done with one project."""
    deeds: dict[str, Callable[[], object]] = {
        "c": lambda: go_on(chat, None, options),
        "e": lambda: go_on(chat, asked("what shall be different?"), options),
        "r": lambda: anyio.run(execute, chat, options),
        "d": lambda: delete(chat),
    }
    choice = asked(f"{chat}: {PROJECT}")
    if choice in deeds:
        deeds[choice]()


def new(options: Options) -> int:
    from septet.cli.start import Start, begin
    from septet.cli.watch import work
    from septet.team.teams import TEAMS

    return work(begin(None, TEAMS["iterate"], Start(), options), options)


def go_on(chat: str, message: str | None, options: Options) -> int:
    from septet.cli.start import proceed
    from septet.cli.watch import work

    return work(proceed(chat, message or None, options), options)


async def execute(chat: str, options: Options) -> None:
    """Run the program as the runner would, and show what it says."""
    from septet.agents.replies import sources
    from septet.domain.runs import Job
    from septet.team.run_modes import mode_of_run
    from septet.wiring.session import open_session

    async with open_session() as session:
        state = await session.state(chat)
        command = (state.plan.run if state.plan else "") or "python main.py"
        sandbox = await session.sandbox(options.unsafe_local)
        job = Job(
            command=("sh", "-c", command),
            workspace=state.workspace,
            limits=state.team.limits,
            mode=mode_of_run(state, await sources(state, session.blobs)),
            network=state.team.network,
        )
        result = await sandbox.run(job)
    put_bytes(result.stdout.encode())
    notify(f"{result.stderr}{command}: {result.ending}")


def delete(chat: str) -> None:
    from septet.cli.chats import in_session
    from septet.wiring.upkeep import remove

    if confirm(f"delete {chat} for good?"):
        in_session(lambda session: remove(session, chat))


def changed(options: Options) -> Options:
    """The options with one of them another way."""
    step, model = "on" if options.step else "off", options.model or "chosen for you"
    notify(f"step mode {step} · says {told(options)} · model {model}")
    choice = asked(OPTIONS)
    if choice == "s":
        return dataclasses.replace(options, step=not options.step)
    if choice in ("v", "q"):
        return dataclasses.replace(options, verbose=choice == "v", quiet=choice == "q")
    return dataclasses.replace(options, model=asked("model")) if choice == "m" else options


def told(options: Options) -> str:
    return "all" if options.verbose else "only results" if options.quiet else "what happens"
