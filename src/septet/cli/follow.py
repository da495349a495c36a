"""`watch`: follows a chat that another process conducts, from its beginning to its end."""

from functools import partial
from typing import TYPE_CHECKING

import click

from septet.cli.completion import chat_names
from septet.cli.options import OutputOptions, bell_option

if TYPE_CHECKING:
    from septet.cli.progress import ProgressScreen
    from septet.domain.state import State
    from septet.wiring.session import Session


@click.command(epilog="Examples: septet watch analog-clock; septet watch analog-clock --json | jq .type")
@click.argument("name", shell_complete=chat_names)
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout: every event, then the result.")
@click.option("-v", "--verbose", is_flag=True, help="Also print the members' messages.")
@click.option("--plain", is_flag=True, help="No colours.")
@bell_option
def watch(name: str, as_json: bool, verbose: bool, plain: bool, bell: bool) -> int:
    """Follow a chat that runs elsewhere, as in a second terminal: what happened, then what happens, until it ends.

    It only reads: leaving by Ctrl-C changes nothing in the chat. The result and the exit code are those of the chat.
    """
    import anyio

    output = OutputOptions(json=as_json, quiet=as_json, verbose=verbose, plain=plain, bell=bell)
    return anyio.run(partial(follow_to_end, name, output))


async def follow_to_end(name: str, output: OutputOptions) -> int:
    from septet.chat.results import result_of
    from septet.cli.chats import open_session_of
    from septet.cli.output import ring
    from septet.cli.result import print_result

    async with open_session_of(name, holds=False) as session:
        state = await follow(session, await session.find(name), output)
        print_result(state, output, session.command(state.chat))
        if output.bell:
            ring()
        return result_of(state).exit_code


def tell(screen: "ProgressScreen", text: str, output: OutputOptions) -> None:
    from septet.cli.output import ring

    if not output.quiet:
        screen.say("septet", text)
    if output.bell:
        ring()


async def follow(session: "Session", chat: str, output: OutputOptions) -> "State":
    """Print the chat's events until it has ended; returns its last state."""
    from septet.chat.results import awaited_question
    from septet.cli.progress import ProgressScreen
    from septet.cli.watch import introduce, show_event
    from septet.domain.reduce import reduce
    from septet.domain.state import State
    from septet.ways.table import way_of

    newest, state = await session.state(chat), State(chat=chat)
    screen = ProgressScreen(state, output.plain, output.verbose or way_of(newest.team).is_talk)
    if not output.quiet:
        introduce(newest, output)
    async for recorded in session.store.watch(chat):
        before, state = state, reduce(state, recorded)
        show_event(recorded, screen, output)
        if recorded.seq < newest.seq:
            continue
        if state.ended is not None:
            break
        is_news = recorded.seq == newest.seq or awaited_question(before) is None
        if is_news and (asked := awaited_question(state)) is not None:
            tell(screen, f"waits for an answer ({asked.kind}): {session.command(chat)}", output)
    return state
