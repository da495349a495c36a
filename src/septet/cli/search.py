"""`search`: where words were said, in all chats."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session
from septet.cli.output import notify

if TYPE_CHECKING:
    from septet.chat.search import Hit
    from septet.wiring.session import Session


@click.command(epilog="Example: septet search hour hand")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--most", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most so many places."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def search(words: tuple[str, ...], most: int, as_json: bool) -> int:
    """Where all of WORDS, or words that begin so, were said in one go, the newest first.

    What members and people said, runs printed and tools answered is searched; nothing is written for it.
    """

    async def work(session: "Session") -> str:
        from septet.chat.search import SearchIndex, query_of
        from septet.cli.tables import columns_of
        from septet.domain.codec import ENCODER
        from septet.errors import BadUsage

        wanted = " ".join(words)
        if not query_of(wanted):
            raise BadUsage(f"'{wanted[:40]}' has no word to search for", "use letters or digits")
        hits = await SearchIndex(session.store).find(wanted, "newest", most + 1)
        if len(hits) > most:
            notify(f"septet: the newest {most}; there is more: --most {most * 2} shows it")
        if as_json:
            return "\n".join(ENCODER.encode(hit).decode() for hit in hits[:most])
        return hit_lines(hits[:most], columns_of(sys.stdout))

    return in_session(
        work, "" if as_json else "nobody has said that: try fewer words, or their beginnings", as_json
    )


def hit_lines(hits: "Sequence[Hit]", width: int) -> str:
    """Chat, when, who and what; a line each on a terminal of that width."""
    from septet.chat.results import clip
    from septet.cli.tables import local_time
    from septet.common.text import printable

    longest = max((len(hit.chat) for hit in hits), default=0)
    lines: list[str] = []
    for hit in hits:
        said = " ".join(printable(hit.words).split())
        line = f"{hit.chat:<{longest}}  {local_time(hit.at)}  {printable(hit.who):<9}  {said}"
        lines.append(clip(line, width) if width else line)
    return "\n".join(lines)
