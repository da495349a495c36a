"""`fork`, `restore`, `rename` and `rm`: looking after chats."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session
from septet.cli.completion import chat_names
from septet.cli.output import confirm, notify

if TYPE_CHECKING:
    from septet.domain.events import Recorded
    from septet.wiring.session import Session
    from septet.wiring.upkeep import RestoreResult


@click.command(epilog="Example: septet fork analog-clock --from v2")
@click.argument("name", shell_complete=chat_names)
@click.option("--from", "version", metavar="VERSION", help="Where the branch begins: v2 (all that there is).")
@click.option("-n", "--name", "new", default="", help="What to call the new chat.")
@click.option("--json", "as_json", is_flag=True, help="What was made, as one JSON object.")
def fork(name: str, version: str | None, new: str, as_json: bool) -> int:
    """A new chat that begins as chat NAME did, up to a version or as far as it is.

    It has a workspace of its own with the files of that version. The new name goes to stdout; NAME stays as it is.
    """

    async def work(session: "Session") -> str:
        from septet.domain.codec import ENCODER
        from septet.wiring.forks import fork_named

        done = await fork_named(session, await session.find(name), version, new)
        if as_json:
            return ENCODER.encode(done).decode()
        files = f"the files of v{done.version}" if done.version else "no version yet"
        notify(f"septet: {done.chat} has {files} in {done.workspace}; to go on: {done.next}")
        return done.chat

    return in_session(work, exact=as_json)


@click.command(epilog="Example: septet restore analog-clock v2")
@click.argument("name", shell_complete=chat_names)
@click.argument("point", required=False)
@click.option("--yes", is_flag=True, help="Without POINT: back to before the last act, without asking.")
@click.option("--json", "as_json", is_flag=True, help="Points, or what was done, as JSON objects.")
def restore(name: str, point: str | None, yes: bool, as_json: bool) -> int:
    """Bring the workspace back to a version (v2) or a snapshot (s3), byte by byte.

    Without POINT the points are listed and, on a terminal, the last one before an act is offered. What is
    there now is kept as a snapshot first, so that this can be taken back.
    """

    async def work(session: "Session") -> str:
        from septet.cli.tables import point_lines, point_objects
        from septet.wiring.upkeep import restore_workspace

        chat = await session.find(name)
        chosen = point
        if chosen is None:
            log = await session.log(chat)
            chosen = offer_point(chat, log, yes, as_json)
            if chosen is None:
                return point_objects(log) if as_json else point_lines(log)
            if not chosen:
                return f"{chat} stays as it is"
        return restore_text(await restore_workspace(session, chat, chosen), as_json)

    return in_session(work, exact=as_json)


def offer_point(chat: str, log: "Sequence[Recorded]", yes: bool, as_json: bool) -> str | None:
    """The point before the last act, nothing if the person does not want it; None where nobody is asked."""
    from septet.chat.versions import point_to_undo
    from septet.cli.tables import point_lines
    from septet.errors import BadUsage

    last = point_to_undo(log)
    if last is None and yes:
        raise BadUsage(f"'{chat}' has no point before an act", f"septet restore {chat} lists those it has")
    if last is None or yes or as_json or not sys.stdin.isatty():
        return last.point if last and yes else None
    notify(point_lines(log))
    wanted = confirm(f"bring {chat} back to {last.point}, before the last act?")
    return last.point if wanted else ""


def restore_text(done: "RestoreResult", as_json: bool) -> str:
    from septet.domain.codec import ENCODER

    if as_json:
        return ENCODER.encode(done).decode()
    undo = f"septet restore {done.chat} {done.undo} takes that back"
    return f"{done.chat}: the workspace is as it was at {done.point}; {undo}"


@click.command(epilog="Example: septet rename analog-clock-k3f clock")
@click.argument("name", shell_complete=chat_names)
@click.argument("new")
def rename(name: str, new: str) -> int:
    """Give the chat whose whole name is NAME another one."""

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import rename_chat_named as renamed

        return await renamed(session, await session.find(name, whole=True), new)

    return in_session(work)


@click.command(epilog="Example: septet rm analog-clock --yes")
@click.argument("name", shell_complete=chat_names)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(name: str, yes: bool) -> int:
    """Delete the chat whose whole name is NAME for good, with its workspace unless that is a folder of your own."""

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import forget_remote, remove

        if forgotten := await forget_remote(session, name):
            return forgotten
        chat = await session.find(name, whole=True)
        return await remove(session, chat) if yes or confirm_removal(chat) else f"{chat} stays"

    return in_session(work)


def confirm_removal(chat: str) -> bool:
    from septet.errors import BadUsage

    if not sys.stdin.isatty():
        raise BadUsage(f"'{chat}' would be deleted for good", "say so with --yes")
    return confirm(f"delete {chat} for good?")
