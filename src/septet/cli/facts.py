"""`facts`: what every team that works in a project is told; a file that people edit too."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session
from septet.cli.options import Folder

if TYPE_CHECKING:
    from septet.wiring.session import Session


@click.command(epilog="Example: septet facts -C clock 'remember: the face is white'")
@click.argument("change", required=False)
@click.option("-C", "workspace", type=Folder(), default=".", help="The project's folder.")
@click.option("--edit", is_flag=True, help="Open the file in your editor.")
def facts(change: str | None, workspace: Path, edit: bool) -> int:
    """Show the facts of a project, or change them: 'remember: …', 'forget: …'.

    Teams are told them in every briefing, and add to them by the same words.
    """

    async def work(session: "Session") -> str:
        from datetime import UTC, datetime

        from septet.domain.facts import change_in
        from septet.errors import BadUsage
        from septet.workspace.facts_file import Memory

        memory = Memory(session.home.facts, workspace)
        if change:
            read = change_in(change)
            if read is None:
                raise BadUsage(f"'{change[:60]}' changes nothing", "write 'remember: FACT' or 'forget: FACT'")
            memory.change(read, f"the person, {datetime.now(UTC).date()}")
        if edit and memory.lines():
            click.edit(filename=str(memory.path))
        return "\n".join(f"- {fact} ({source})" for fact, source in memory.lines().items())

    return in_session(work, "no facts are known of this project: septet facts 'remember: …' adds one")
