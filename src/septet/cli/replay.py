"""`replay`: a recorded chat run once more, offline."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from septet.domain.events import Recorded
    from septet.wiring.replay import ReplayResult


@click.command(epilog="Example: septet replay clock.jsonl")
@click.argument("source", metavar="FILE|NAME")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
def replay(source: str, as_json: bool) -> int:
    """Run a recorded chat once more, offline, and say whether the log is the same.

    FILE is a log (septet export NAME --format jsonl), NAME a chat here. Members answer from the log, the person too;
    programs are really run. The exit code is 1 where an event differs, and the first one is shown: a chat becomes a
    regression test by copying one file.
    """
    import anyio

    from septet.cli.chats import find_source
    from septet.common.temporary import temporary_folder
    from septet.settings.home import Home
    from septet.wiring.replay import read_log, replay_chat
    from septet.wiring.session import open_session

    file = Path(source) if Path(source).is_file() else None

    async def recorded() -> "list[Recorded]":
        if file is not None:
            return read_log(file)
        async with open_session() as session:
            return await session.log(await find_source(session, source))

    async def work() -> "ReplayResult":
        log = await recorded()
        with temporary_folder("replay") as folder:
            home = Home(data=folder / "home", config=folder / "config", cache=folder / "cache")
            async with open_session(home) as session:
                sandbox = await session.sandbox()
                return await replay_chat(session, sandbox, log, folder / "chat", files_of_demo(log))

    result = anyio.run(work)
    return show_result(result, as_json)


def files_of_demo(log: "Sequence[Recorded]") -> "Mapping[str, str]":
    """The files that a demo's folder begins with; none if the chat is no demo."""
    from septet.common.demo_scripts import demo_names
    from septet.demos.catalogue import load_demo
    from septet.domain.events import ChatStarted

    first = log[0].event if log else None
    models = (
        [model for one in first.team.members for model in one.model] if isinstance(first, ChatStarted) else []
    )
    names = [name for name in demo_names() if f"scripted:demo/{name}" in models]
    return load_demo(names[0]).files if names else {}


def show_result(result: "ReplayResult", as_json: bool) -> int:
    """Print the result; the exit code is 1 where an event differs."""
    import msgspec

    from septet.cli.output import print_text, put_exactly

    if as_json:
        put_exactly(msgspec.json.encode(result).decode() + "\n")
    elif result.difference is None:
        print_text(f"the same: {result.events} events")
    else:
        one = result.difference
        print_text(f"event {one.event} differs\n- {one.was}\n+ {one.now}")
    return 0 if result.difference is None else 1
