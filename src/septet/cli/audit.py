"""`audit`: which failure modes a transcript shows, of a chat here or of another program."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from septet.chat.audit import Suspicion


@click.command(epilog="Example: septet audit trajectory.json")
@click.argument("source", metavar="FILE|NAME")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, one for each suspicion.")
def audit(source: str, as_json: bool) -> int:
    """Suspected failure modes and unproven claims of a transcript, with the messages that show them.

    FILE is a log of Septet, a list of messages (OpenAI, AutoGen, AG2) or a trajectory (SWE-agent, mini-swe-agent);
    NAME is a chat here. The exit code is 3 where something was found.
    """
    import anyio
    import msgspec

    from septet.chat.audit import audit_log, audit_text
    from septet.cli.chats import find_source
    from septet.cli.output import print_text, put_exactly
    from septet.common.documents import read_text
    from septet.wiring.session import open_session

    async def of_chat() -> "list[Suspicion]":
        async with open_session() as session:
            return audit_log(await session.log(await find_source(session, source)))

    path = Path(source)
    found = audit_text(read_text(path)) if path.is_file() else anyio.run(of_chat)
    if as_json:
        put_exactly("".join(msgspec.json.encode(one).decode() + "\n" for one in found))
    else:
        print_text(audit_table(found))
    return 3 if found else 0


def audit_table(found: "Sequence[Suspicion]") -> str:
    """A line for each suspicion, by mode."""
    from septet.chat.audit import FAILURE_MODES
    from septet.common.text import cut_middle

    if not found:
        return "no signs of a known failure mode"
    rows = sorted(found, key=lambda one: (one.mode, one.message))
    who = max(len(one.who) for one in rows)
    return "\n".join(
        f"{one.mode} {FAILURE_MODES[one.mode]:<28} #{one.message:<4} {one.who:<{who}}  {cut_middle(one.why, 160)}"
        for one in rows
    )
