"""`export`: a whole chat as one file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session
from septet.cli.completion import chat_names
from septet.cli.output import notify, put_bytes

if TYPE_CHECKING:
    from septet.wiring.session import Session

FORMATS = ("md", "html", "jsonl", "zip", "txt")


@click.command(epilog="Example: septet export analog-clock --format html --redact --out clock.html")
@click.argument("name", shell_complete=chat_names)
@click.option("--format", "form", type=click.Choice(FORMATS), default="md", show_default=True)
@click.option("--redact", is_flag=True, help="Remove what looks like keys, e-mail addresses and home paths.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write to this file, atomically (standard output).",
)
def export(name: str, form: str, redact: bool, out: Path | None) -> int:
    """Export a whole chat as one file.

    \b
    md     Markdown, for reading
    html   a page for any browser: no script, no network
    txt    the chat history
    jsonl  the log itself
    zip    transcript, log, the files of the newest version and what they made
    """

    async def work(session: "Session") -> str:
        from septet.chat.export_file import document
        from septet.chat.redaction import Redaction

        check_target(form, out)
        redaction = Redaction(session.models.secrets(), str(Path.home())) if redact else None
        log = await session.log(await session.find(name))
        write_output(await document(log, form, session.blobs, redaction), out)
        if redaction is not None:
            notify(f"septet: {redaction.summary}")
        return ""

    return in_session(work)


def check_target(form: str, out: Path | None) -> None:
    from septet.errors import BadUsage
    from septet.workspace.delivery import check_destination

    if out is not None:
        check_destination(out)
    elif form == "zip" and sys.stdout.isatty():
        raise BadUsage("a zip cannot be shown on a terminal", "name a file with --out FILE, or use > FILE")


def write_output(content: bytes, out: Path | None) -> None:
    """Write to the file, or to stdout."""
    from septet.workspace.delivery import write_file_atomically

    if out is not None:
        write_file_atomically(out, content)
    else:
        put_bytes(content)
