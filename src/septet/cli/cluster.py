"""`host`, `join`, `conduct` and `up`: the same chats, with members on many machines."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

import click

from septet.cli.options import Options, run_options

P = ParamSpec("P")


@dataclass(frozen=True)
class Meeting:
    """Where the server is and what opens it, as the command line says."""

    url: str
    token_file: Path | None
    tls_ca: str


def meeting_options(command: Callable[P, int]) -> Callable[..., int]:
    """Collect the server's options into the command's `meeting` argument."""

    @functools.wraps(command)
    def collected(*args: P.args, **kwargs: P.kwargs) -> int:
        given = {field: kwargs.pop(field) for field in Meeting.__dataclass_fields__}
        kwargs["meeting"] = Meeting(**given)  # pyright: ignore[reportArgumentType]  # click has checked them
        return command(*args, **kwargs)

    file = click.Path(path_type=Path)
    for option in (
        click.option(
            "--tls-ca", default="", metavar="FILE", help="The certificate that signed the server's."
        ),
        click.option("--token-file", type=file, help="The token; SEPTET_TOKEN does too."),
        click.argument("url"),
    ):
        collected = option(collected)
    return collected


@click.command(epilog="Example: septet host --port 4222")
@click.option("--host", "address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=4222, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option("--store", type=click.Path(path_type=Path), help="The folder of the log (under SEPTET_HOME).")
@click.option("--sync", type=click.Choice(["default", "always"]), default="default", show_default=True)
@click.option(
    "--tls", type=(str, str), default=("", ""), metavar="CERT KEY", help="Needed by other addresses."
)
def host(address: str, port: int, store: Path | None, sync: str, tls: tuple[str, str]) -> int:
    """Start the server where chats and members of many machines meet.

    It listens on this machine only unless told otherwise. The log is private to you, and so is the token that
    members need. --sync always writes every event to the disk before it counts: safe against a power cut on a
    single server, and several times slower.
    """
    from septet.cli.hosting import plan_for, run_host

    return run_host(plan_for(store, port, address, sync, tls))


@click.command(epilog="Example: septet join nats://127.0.0.1:4222 --as coder,runner --token-file TOKEN")
@meeting_options
@click.option("--as", "roles", required=True, metavar="ROLES", help="The roles to serve: coder,runner,...")
@click.option("--name", default="", help="What to call this member (the machine's name).")
@click.option("--unsafe-local", is_flag=True, help="Run code WITHOUT a sandbox, with your rights.")
def join(meeting: Meeting, roles: str, name: str, unsafe_local: bool) -> int:
    """Serve roles for chats that are conducted elsewhere.

    Several may serve one role: they share the turns. One that is killed is replaced by another, or by itself
    when it is back. The server may be started later.
    """
    from septet.cli.hosting import link_to, run_member

    return run_member(
        link_to(meeting.url, meeting.token_file, meeting.tls_ca), roles.split(","), name, unsafe_local
    )


@click.command(
    epilog="Example: septet conduct nats://127.0.0.1:4222 'an analog clock' --token-file TOKEN --yes"
)
@meeting_options
@click.argument("goal", required=False)
@click.option(
    "--resume", "name", default="", metavar="NAME", help="Go on with this chat instead of a new one."
)
@click.option("-t", "--team", default="iterate", show_default=True, help="A team's name or a team.yaml.")
@run_options
def conduct(meeting: Meeting, goal: str | None, name: str, team: str, options: Options) -> int:
    """Build GOAL with the members that have joined the server at URL.

    Should this process die, anybody may go on with the chat: --resume NAME, from any machine.
    """
    from septet.cli.hosting import link_to, run_conductor

    return run_conductor(link_to(meeting.url, meeting.token_file, meeting.tls_ca), goal, name, team, options)


@click.command(epilog="Example: septet up team.yaml")
@click.argument("team", default="iterate")
@click.option("--port", default=4222, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option("--store", type=click.Path(path_type=Path), help="The folder of the log (under SEPTET_HOME).")
@click.option("--unsafe-local", is_flag=True, help="Run code WITHOUT a sandbox, with your rights.")
def up(team: str, port: int, store: Path | None, unsafe_local: bool) -> int:
    """Start a host and a member for each role of TEAM on this machine; stop all of them together.

    A member that dies is started again.
    """
    from septet.cli.hosting import plan_for, run_all

    return run_all(plan_for(store, port, "127.0.0.1", "default", ("", "")), team, unsafe_local)
