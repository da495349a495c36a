"""`facts`: shows and changes the facts of a project, which are part of every team's prompts."""

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

    They are part of every member's prompt; members add to them with the same commands.
    """

    async def work(session: "Session") -> str:
        from datetime import UTC, datetime

        from septet.domain.facts import change_in
        from septet.errors import BadUsage
        from septet.workspace.facts_file import Memory

        memory = Memory(session.home.facts, workspace)
        if change:
            facts_change = change_in(change)
            if facts_change is None:
                raise BadUsage(f"'{change[:60]}' changes nothing", "write 'remember: FACT' or 'forget: FACT'")
            memory.change(facts_change, f"the person, {datetime.now(UTC).date()}")
        if edit:
            memory.ensure_file()
            click.edit(filename=str(memory.path))
        return "\n".join(f"- {fact} ({source})" for fact, source in memory.lines().items())

    return in_session(work, "this project has no facts: septet facts 'remember: …' adds one")
