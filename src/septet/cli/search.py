"""`search`: full-text search over all chats."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_archive
from septet.cli.output import notify

if TYPE_CHECKING:
    from septet.chat.search import Hit
    from septet.wiring.archive import Archive


@click.command(epilog="Example: septet search hour hand")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--most",
    type=click.IntRange(1, 100_000),
    default=50,
    show_default=True,
    help="The maximum number of hits.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def search(words: tuple[str, ...], most: int, as_json: bool) -> int:
    """Find the messages that contain all of WORDS, or words that begin with them, newest first.

    Messages of members and people, outputs of runs and results of tools are searched.
    """

    async def work(archive: "Archive") -> str:
        from septet.chat.search import SearchIndex, query_of
        from septet.cli.tables import columns_of
        from septet.domain.codec import ENCODER
        from septet.errors import BadUsage

        wanted = " ".join(words)
        if not query_of(wanted):
            raise BadUsage(f"'{wanted[:40]}' has no word to search for", "use letters or digits")
        hits = await SearchIndex(archive.store, archive.index).find(wanted, "newest", most + 1)
        if len(hits) > most:
            notify(f"septet: only the newest {most} are shown: --most {most * 2} shows more")
        if as_json:
            return "\n".join(ENCODER.encode(hit).decode() for hit in hits[:most])
        return hit_lines(hits[:most], columns_of(sys.stdout))

    import anyio

    nothing = "" if as_json else "no match: try fewer words, or only their beginnings"
    return in_archive(work, nothing, as_json, anyio.run)


def hit_lines(hits: "Sequence[Hit]", width: int) -> str:
    """Return a line for each hit: chat, time, speaker and text; clipped to the width, unless it is 0."""
    from septet.cli.tables import local_time
    from septet.common.text import clip, printable

    longest = max((len(hit.chat) for hit in hits), default=0)
    lines: list[str] = []
    for hit in hits:
        text = " ".join(printable(hit.words).split())
        line = f"{hit.chat:<{longest}}  {local_time(hit.at)}  {printable(hit.who):<9}  {text}"
        lines.append(clip(line, width) if width else line)
    return "\n".join(lines)
