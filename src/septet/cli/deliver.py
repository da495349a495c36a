"""`deliver`, `undo` and `try`: what a chat has made of the person's folder, and the folder itself."""

import sys
from typing import TYPE_CHECKING

import click
from anyio import to_thread

from septet.cli.chats import in_session_of
from septet.cli.completion import chat_names
from septet.cli.output import confirm, notify, put_bytes, show_diff
from septet.common.values import Value
from septet.errors import BadUsage

if TYPE_CHECKING:
    from septet.domain.events import Delivered
    from septet.domain.state import State
    from septet.wiring.session import Session

CONFLICT = 3
NOT_APPROVED = 4


def tell(done: "Delivered | None", chat: str) -> int:
    """What was done, and the exit code of it."""
    from septet.chat.export import delivery_text

    if done is None:
        notify(f"septet: {chat} has nothing to deliver")
        return 0
    can_undo = done.files and not (done.undoes or done.branch)
    undo = f"; septet undo {chat} takes that back" if can_undo else ""
    notify(f"septet: {delivery_text(done)}{undo}")
    return CONFLICT if done.patch or done.unproven else 0


class DeliveryConsent(Value):
    """Whether the person has agreed to a delivery, or can be asked now; `unsafe` if programs run without a sandbox."""

    agreed: bool
    asks: bool
    unsafe: bool = False


def commands_for(chat: str) -> str:
    """The commands that deliver later, also what is on a server."""
    return f"septet deliver {chat} (septet diff {chat})"


async def deliver_finished(session: "Session", state: "State", consent: DeliveryConsent) -> int:
    """At the end of a command: deliver what is finished if the person agrees, and say what is left to do otherwise."""
    from septet.chat.results import is_delivered
    from septet.ways.endings import is_finished
    from septet.ways.table import way_of
    from septet.wiring.delivery import is_elsewhere

    if state.base is None or state.work.version is None:
        return 0
    commands = commands_for(state.chat)
    if await to_thread.run_sync(is_elsewhere, state):
        there = f"{session.command(state.chat)} --yes"
        notify(f"septet: {state.workspace} is not on this machine; where it is: {there}")
        return NOT_APPROVED
    diff = await (await session.delivery(state)).diff() if not is_delivered(state) else ""
    if not diff:
        return delivery_code(state)
    if not is_finished(state):
        notify(f"septet: not in your folder yet: {commands}")
        return 0
    if not way_of(state.team).delivers(state):
        notify(
            f"septet: a question leaves your folder as it is; what was written for it: septet diff {state.chat}"
        )
        return 0
    agreed = consent.agreed
    if consent.asks and not agreed:
        show_diff(diff)
        agreed = confirm(f"write this to {state.workspace}?")
    if agreed:
        done = await session.deliver(state.chat, unsafe=consent.unsafe)
        return tell(done, state.chat)
    notify(f"septet: not written to {state.workspace}: {commands}")
    return NOT_APPROVED


def delivery_code(state: "State") -> int:
    done = state.base.deliveries if state.base else ()
    return CONFLICT if done and (done[-1].patch or done[-1].unproven) else 0


@click.command(epilog="Example: septet deliver mend-parser --branch")
@click.argument("name", shell_complete=chat_names)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--yes", is_flag=True, help="Do not show the difference, and do not ask.")
@click.option(
    "--branch",
    metavar="[BRANCH]",
    is_flag=False,
    flag_value="",
    help="Commit to a new branch (septet/NAME) instead; your checkout stays as it is.",
)
@click.option("--unsafe-local", is_flag=True, help="Check another state of the folder without a sandbox.")
def deliver(name: str, files: tuple[str, ...], yes: bool, branch: str | None, unsafe_local: bool) -> int:
    """Write what chat NAME has made into its folder, proven or not: all of it, or only FILEs.

    Where you have changed the same file meanwhile, both changes are merged; where they disagree, the file stays
    yours and the team's change is in septet-NAME.patch. If a merge or the choice of files gives a state that was
    never checked, that state is checked as well.
    """
    from septet.chat.results import is_delivered

    code = 0
    if files and branch is not None:
        raise BadUsage("a branch gets all files", "leave out --branch, or the files")

    async def work(session: "Session") -> str:
        nonlocal code
        chat = await session.find(name)
        state = await session.state(chat)
        is_there = is_delivered(state) and not (state.base and state.base.deliveries[-1].branch)
        diff = await (await session.delivery(state)).diff(files) if not is_there else ""
        if not diff:
            tell(None, chat)
            return ""
        if not (yes or branch is not None) and sys.stdin.isatty():
            show_diff(diff)
            if not confirm(f"write this to {state.workspace}?"):
                code = NOT_APPROVED
                return ""
        done = (
            await session.deliver(chat, files or None, unsafe=unsafe_local)
            if branch is None
            else await session.deliver_to_branch(chat, branch or f"septet/{chat}")
        )
        code = tell(done, chat)
        return ""

    in_session_of(name, work, holds=True)
    return code


@click.command(epilog="Example: septet undo mend-parser")
@click.argument("name", shell_complete=chat_names)
def undo(name: str) -> int:
    """Take back what chat NAME has delivered last.

    What you have changed in these files since stays, unless it is in the same lines.
    """
    code = 0

    async def work(session: "Session") -> str:
        nonlocal code
        chat = await session.find(name)
        code = tell(await session.undo(chat), chat)
        return ""

    in_session_of(name, work, holds=True)
    return code


@click.command("try", epilog="Example: septet try mend-parser -- python -m parser example.txt")
@click.argument("name", shell_complete=chat_names)
@click.argument("command", nargs=-1)
@click.option("--unsafe-local", is_flag=True, help="Without a sandbox.")
def try_version(name: str, command: tuple[str, ...], unsafe_local: bool) -> int:
    """Run the newest version of chat NAME as the runner would, before it is delivered.

    COMMAND is what the plan runs, unless you name another. The exit code is that of COMMAND.
    """
    code = 0

    async def work(session: "Session") -> str:
        nonlocal code
        from septet.wiring.trial import try_newest

        result = await try_newest(session, await session.find(name), command, unsafe_local)
        put_bytes(result.stdout.encode())
        if result.stderr:
            notify(result.stderr.removesuffix("\n"))
        code = result.exit_code
        return ""

    in_session_of(name, work)
    return code
