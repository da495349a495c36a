"""`fork`, `restore`, `rename`, `rm`, `backup` and `gc`: maintenance of chats."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session
from septet.cli.completion import chat_names, version_names
from septet.cli.output import confirm, notify, print_text, put_exactly

if TYPE_CHECKING:
    from septet.domain.events import Recorded
    from septet.wiring.session import Session
    from septet.wiring.upkeep import RestoreResult, Space


@click.command(epilog="Example: septet fork analog-clock --from v2")
@click.argument("name", shell_complete=chat_names)
@click.option(
    "--from",
    "version",
    metavar="VERSION",
    shell_complete=version_names,
    help="The last version to copy: v2 (the whole chat).",
)
@click.option("-n", "--name", "new", default="", help="The name of the new chat.")
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object.")
def fork(name: str, version: str | None, new: str, as_json: bool) -> int:
    """Start a new chat from a copy of chat NAME, of all of it or up to a version.

    It has a workspace of its own with the files of that version. The new name goes to stdout; NAME is not changed.
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
@click.argument("point", required=False, shell_complete=version_names)
@click.option("--yes", is_flag=True, help="Without POINT: undo the last change, without asking.")
@click.option("--json", "as_json", is_flag=True, help="The points, or the result, as JSON objects.")
def restore(name: str, point: str | None, yes: bool, as_json: bool) -> int:
    """Bring the workspace back to a version (v2) or a snapshot (s3), byte by byte.

    Without POINT the points are listed and, on a terminal, the last one before a change is offered. The current
    files are kept as a snapshot first, so that this can be undone.
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
                return f"{chat} was not changed"
        return restore_text(await restore_workspace(session, chat, chosen), as_json)

    return in_session(work, exact=as_json)


def offer_point(chat: str, log: "Sequence[Recorded]", yes: bool, as_json: bool) -> str | None:
    """Offer the point before the last change; "" if the person declines, None if nobody is asked."""
    from septet.chat.versions import point_to_undo
    from septet.cli.tables import point_lines
    from septet.errors import BadUsage

    last = point_to_undo(log)
    if last is None and yes:
        raise BadUsage(f"'{chat}' has no point before a change", f"septet restore {chat} lists those it has")
    if last is None or yes or as_json or not sys.stdin.isatty():
        return last.point if last and yes else None
    notify(point_lines(log))
    wanted = confirm(f"bring {chat} back to {last.point}, before the last change?")
    return last.point if wanted else ""


def restore_text(done: "RestoreResult", as_json: bool) -> str:
    from septet.domain.codec import ENCODER

    if as_json:
        return ENCODER.encode(done).decode()
    undo = f"septet restore {done.chat} {done.undo} undoes this"
    return f"{done.chat}: the workspace is as it was at {done.point}; {undo}"


@click.command(epilog="Example: septet rename analog-clock-k3f clock")
@click.argument("name", shell_complete=chat_names)
@click.argument("new")
def rename(name: str, new: str) -> int:
    """Rename the chat whose whole name is NAME."""

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import rename_chat_named

        return await rename_chat_named(session, await session.find(name, whole=True), new)

    return in_session(work)


@click.command(epilog="Example: septet rm analog-clock --yes")
@click.argument("name", shell_complete=chat_names)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(name: str, yes: bool) -> int:
    """Delete the chat whose whole name is NAME for good, with its workspace unless that is a folder of your own."""

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import forget_remote, remove

        if message := await forget_remote(session, name):
            return message
        chat = await session.find(name, whole=True)
        return await remove(session, chat) if yes or confirm_removal(chat) else f"{chat} was not deleted"

    return in_session(work)


def confirm_removal(chat: str) -> bool:
    from septet.errors import BadUsage

    if not sys.stdin.isatty():
        raise BadUsage(f"'{chat}' would be deleted for good", "confirm it with --yes")
    return confirm(f"delete {chat} for good?")


@click.command(
    epilog="Examples: septet backup monday.zip; SEPTET_HOME=~/new septet backup monday.zip --restore"
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--restore", "restores", is_flag=True, help="Read FILE into a home that has no chats yet.")
@click.option("--json", "as_json", is_flag=True, help="What FILE holds, as one JSON object.")
def backup(file: Path, restores: bool, as_json: bool) -> int:
    """Write all chats of this machine with their contents to FILE, even while chats run; or read them back.

    FILE also holds facts and examples. It does not hold keys and workspaces: `septet restore NAME v2` writes the files
    of a chat's version again.
    """
    from septet.domain.codec import ENCODER
    from septet.settings.home import find_home
    from septet.wiring.upkeep import back_up, restore_backup

    done = restore_backup(find_home(), file) if restores else back_up(find_home(), file.absolute())
    if as_json:
        put_exactly(ENCODER.encode(done).decode())
    else:
        verb = "were read from" if restores else "are in"
        held = f"{done.chats:,} chats ({done.events:,} events, {done.blobs:,} contents)"
        print_text(f"{held} {verb} {done.file}, {in_mebibytes(done.bytes)}")
    return 0


@click.command(epilog="Example: septet gc")
@click.option(
    "--rewrite", is_flag=True, help="Rewrite a big log of an older Septet once; chats wait meanwhile."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def gc(rewrite: bool, as_json: bool) -> int:
    """Free disk space that no chat needs, even while chats run, and show what each part of Septet's home uses."""
    from septet.domain.codec import ENCODER
    from septet.settings.home import find_home
    from septet.wiring.upkeep import collect_garbage

    spaces = collect_garbage(find_home(), rewrite)
    if as_json:
        put_exactly("\n".join(ENCODER.encode(space).decode() for space in spaces))
    else:
        print_text("\n".join(map(space_line, spaces)))
    return 0


def space_line(space: "Space") -> str:
    freed = f"  ({in_mebibytes(space.freed)} freed)" if space.freed else ""
    return f"{space.what:<18} {in_mebibytes(space.size):>14}  {space.folder}{freed}"


def in_mebibytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB"
