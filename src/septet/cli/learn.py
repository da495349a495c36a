"""`learn`: fills the exemplar's knowledge base from files, folders and chats."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import find_source, in_session

if TYPE_CHECKING:
    from septet.wiring.session import Session


@click.command(epilog="Example: septet learn ~/snippets")
@click.argument("source")
def learn(source: str) -> int:
    """Learn examples from SOURCE: a file, a folder, or a chat that ended done.

    Files: Python with docstrings, Markdown with fenced code, notebooks, JSON lines with title/text/code, and
    XML dumps like Stack Exchange's. The exemplar searches them when a failure repeats.
    """

    path = Path(source)
    is_path = path.exists()

    async def work(session: "Session") -> str:
        from septet.chat.example_sources import examples_in
        from septet.common.text import pluralize

        if is_path:
            count = await session.examples.learn(examples_in(path))
        else:
            count = await session.learn_from(await find_source(session, source))
        return f"{pluralize(count, 'new example')} in {session.home.examples}"

    return in_session(work)
