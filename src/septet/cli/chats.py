"""`list`, `show` and `diff`: projections of the log."""

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from septet.cli.completion import chat_names, version_names
from septet.cli.output import notify, print_diff, print_text, put_exactly

if TYPE_CHECKING:
    from septet.wiring.archive import Archive
    from septet.wiring.session import Session

T = TypeVar("T")
Execute = Callable[[Callable[[], Coroutine[None, None, str]]], str]

MOST_LISTED = 100
"""How many chats a person is shown who does not say."""


def in_session(work: "Callable[[Session], Awaitable[str]]", nothing: str = "", exact: bool = False) -> int:
    """Run `work` with an open session and print the text that it returns, `exact` for programs.

    `nothing` is printed for people if that text is empty.
    """
    import anyio

    from septet.wiring.session import open_session

    return print_result(work, open_session, anyio.run, nothing, exact)


def in_session_of(
    chat: str, work: "Callable[[Session], Awaitable[str]]", *, holds: bool = False, exact: bool = False
) -> int:
    """The same in the session that has the chat: this machine's, or that of the server which it is on.

    On a server `holds` makes this process the chat's conductor meanwhile.
    """
    import anyio

    return print_result(work, partial(open_session_of, chat, holds), anyio.run, "", exact)


@asynccontextmanager
async def open_session_of(chat: str, holds: bool) -> "AsyncGenerator[Session]":
    from septet.wiring.session import open_session

    async with open_session() as session:
        note = await session.remote_chat(chat)
        if note is None:
            yield session
            return
    from septet.wiring.cluster import open_server_of

    async with open_server_of(chat, note.command, holds=holds) as session:
        yield session


def in_archive(
    work: "Callable[[Archive], Awaitable[str]]",
    nothing: str = "",
    exact: bool = False,
    execute: Execute | None = None,
) -> int:
    """The same for work that only reads chats, which opens sooner. Unless `execute` is given, it has no event loop."""
    from septet.common.threads import run_directly
    from septet.wiring.archive import open_archive

    return print_result(work, open_archive, execute or (lambda read: run_directly(read())), nothing, exact)


def print_result(
    work: Callable[[T], Awaitable[str]],
    open_context: Callable[[], AbstractAsyncContextManager[T]],
    execute: Execute,
    nothing: str,
    exact: bool,
) -> int:
    async def run() -> str:
        async with open_context() as opened:
            return await work(opened)

    text = execute(run)
    if text:
        put_exactly(text) if exact else print_text(text)
    elif nothing:
        notify(f"septet: {nothing}")
    return 0


async def find_source(session: "Session", source: str) -> str:
    """Return the chat that a source names if it is no file; the error names both."""
    from septet.errors import BadUsage

    try:
        return await session.find(source)
    except BadUsage as error:
        if not {".", "/"} & set(source):
            raise
        cause = f"there is no file '{source[:80]}', and no chat of that name"
        raise BadUsage(cause, "check the path, or see septet list") from error


@click.command("list", epilog="Example: septet list --json")
@click.option(
    "--most",
    type=click.IntRange(1, 1_000_000),
    help=f"The maximum number of chats (all with --json, else {MOST_LISTED}).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_chats(most: int | None, as_json: bool) -> int:
    """List the chats, most recently changed first; those on a server as last seen from here."""
    most = most or (0 if as_json else MOST_LISTED)

    async def work(archive: "Archive") -> str:
        from septet.chat.summaries import Summaries
        from septet.cli.tables import chat_lines, chat_objects, columns_of, remote_row, row_of

        local = await Summaries(archive.store, archive.index).newest(most + 1 if most else 0)
        rows = [*map(row_of, local), *map(remote_row, archive.remote_chats.all())]
        rows.sort(key=lambda row: row.changed, reverse=True)
        if 0 < most < len(rows):
            notify(f"septet: only the newest {most} are shown: --most {most * 10} shows more")
        rows = rows[: most or None]
        return chat_objects(rows) if as_json else chat_lines(rows, columns_of(sys.stdout))

    return in_archive(
        work, "" if as_json else "there are no chats yet: septet demo clock starts one", as_json
    )


@click.command(epilog="Examples: septet show analog-clock; septet show analog-clock --output 'v2 tests'")
@click.argument("name", shell_complete=chat_names)
@click.option(
    "--output",
    metavar="[RUN]",
    is_flag=False,
    flag_value="",
    help="The whole output of a RUN, stdout to stdout and stderr to stderr; without RUN, the program's newest.",
)
@click.option("--json", "as_json", is_flag=True, help="The result, or the output, as one JSON object.")
def show(name: str, output: str | None, as_json: bool) -> int:
    """Show one chat on one screen: goal, versions, requirements with their evidence, cost.

    With --output, show the whole output of one of its runs.
    """
    if output is not None:
        return in_archive(partial(show_output, name, output, as_json), exact=as_json)

    async def work(archive: "Archive") -> str:
        from septet.chat.results import result_of, summary
        from septet.domain.codec import ENCODER

        state = await archive.state(await archive.find(name))
        return ENCODER.encode(result_of(state)).decode() if as_json else summary(state)

    return in_archive(work, exact=as_json)


async def show_output(name: str, run: str, as_json: bool, archive: "Archive") -> str:
    """Write the output as it is; on a terminal, without control sequences."""
    from septet.chat.export import read_streams, run_named, run_output
    from septet.common.text import printable
    from septet.domain.codec import ENCODER

    chat = await archive.find(name)
    finished = run_named(chat, await archive.log(chat), run)
    streams = await read_streams(finished, archive.blobs)
    if as_json:
        return ENCODER.encode(run_output(chat, finished, streams)).decode()
    for sink, content in zip((sys.stdout, sys.stderr), streams, strict=True):
        sink.buffer.write(printable(content.decode(errors="replace")).encode() if sink.isatty() else content)
        sink.flush()
    return ""


@click.command(epilog="Examples: septet diff mend-parser; septet diff analog-clock v1 v2")
@click.argument("name", shell_complete=chat_names)
@click.argument("old", required=False, shell_complete=version_names)
@click.argument("new", required=False, shell_complete=version_names)
def diff(name: str, old: str | None, new: str | None) -> int:
    """Show what chat NAME changes in your folder, before or after it is delivered.

    With OLD and NEW, show the changes between two versions; a chat with a workspace of its own shows its last two.
    """

    async def work(session: "Session") -> str:
        from septet.chat.versions import version_diff, version_named

        state = await session.state(await session.find(name))
        if state.base is not None and old is None:
            print_diff(await (await session.delivery(state)).diff())
            return ""
        count = len(state.work.versions)
        before = version_named(state, f"v{max(1, count - 1)}" if old is None else old)
        after = version_named(state, f"v{count}" if new is None else new)
        print_diff(await version_diff(before, after, session.blobs))
        return ""

    return in_session_of(name, work, exact=True)
