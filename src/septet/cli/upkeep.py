"""`restore`, `rename` and `rm`: looking after chats."""

import sys
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session

if TYPE_CHECKING:
    from septet.wiring.session import Session


@click.command(epilog="Example: septet restore analog-clock v2")
@click.argument("name")
@click.argument("point")
def restore(name: str, point: str) -> int:
    """Bring the workspace back to a version (v2) or a snapshot (s3), byte by byte.

    What is there now is kept as a snapshot first, so that this can be taken back.
    """

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import restore_workspace

        return await restore_workspace(session, await session.find(name), point)

    return in_session(work)


@click.command(epilog="Example: septet rename analog-clock-k3f clock")
@click.argument("name")
@click.argument("new")
def rename(name: str, new: str) -> int:
    """Give a chat another name."""

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import rename as renamed

        return await renamed(session, await session.find(name), new)

    return in_session(work)


@click.command(epilog="Example: septet rm analog-clock --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(name: str, yes: bool) -> int:
    """Delete a chat for good, with its workspace unless that is a folder of your own."""

    async def work(session: "Session") -> str:
        from septet.wiring.upkeep import remove

        chat = await session.find(name)
        return await remove(session, chat) if yes or confirmed(chat) else f"{chat} stays"

    return in_session(work)


def confirmed(chat: str) -> bool:
    from septet.errors import BadUsage

    if not sys.stdin.isatty():
        raise BadUsage(f"'{chat}' would be deleted for good", "say so with --yes")
    return click.confirm(f"delete {chat} for good?", err=True)
