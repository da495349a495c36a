"""`learn`: fill the exemplar's knowledge base from files, folders and chats."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from septet.cli.chats import in_session

if TYPE_CHECKING:
    from septet.wiring.session import Session


@click.command(epilog="Example: septet learn ~/snippets")
@click.argument("source")
def learn(source: str) -> int:
    """Learn examples from SOURCE: a file, a folder, or a chat that ended done.

    Files: Python with docstrings, Markdown with fenced code, notebooks, JSON lines with title/text/code, and
    Stack-Exchange-like XML dumps. The exemplar is asked when the same failure comes again.
    """

    path = Path(source)
    there = path.exists()

    async def work(session: "Session") -> str:
        from septet.chat.example_sources import examples_in
        from septet.common.text import pluralize

        if there:
            count = await session.examples.learn(examples_in(path))
        else:
            count = await session.learn_from(await session.find(source))
        return f"{pluralize(count, 'new example')} in {session.home.examples}"

    return in_session(work)
