"""`host`, `join`, `conduct` and `up`: chats with members on many machines."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import click

from septet.cli.options import Folder, Options, action_option, run_options
from septet.cluster.endpoint import ConnectOptions
from septet.domain.teams import ALIASES

P = ParamSpec("P")
FILE = click.Path(path_type=Path)


def parse_roles(text: str) -> list[str]:
    """Parse a list of roles; aliases are accepted."""
    return [ALIASES.get(word.strip(), word.strip()) for word in text.split(",")]


def server_options(command: Callable[P, int]) -> Callable[..., int]:
    """Collect the server's options into the command's `server` argument."""

    @functools.wraps(command)
    def with_connect_options(*args: P.args, **kwargs: P.kwargs) -> int:
        given = {
            field: kwargs.pop(field, None) for field in ("url", "token_file", "tls_ca", "config", "store")
        }
        kwargs["server"] = ConnectOptions(**{name: value for name, value in given.items() if value})  # pyright: ignore[reportArgumentType]  # click has checked them
        return command(*args, **kwargs)

    for option in (
        click.option("--tls-ca", default="", metavar="FILE", help="The CA certificate of the server."),
        click.option(
            "--token-file",
            type=FILE,
            help="The server's token, as `septet host` printed it, or SEPTET_TOKEN. Not needed on the host's machine.",
        ),
        click.option("--config", type=FILE, help="A group chat's config.yaml: server, team and model."),
        click.argument("url", default=""),
    ):
        with_connect_options = option(with_connect_options)
    return with_connect_options


@click.group(invoke_without_command=True, epilog="Example: septet host --port 4222")
@click.option("--host", "address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", default=4222, show_default=True, type=click.IntRange(0, 65535), help="0: a free port."
)
@click.option("--store", type=FILE, help="The folder of the log (under SEPTET_HOME).")
@click.option("--sync", type=click.Choice(["default", "always"]), default="default", show_default=True)
@click.option(
    "--tls",
    type=(str, str),
    default=("", ""),
    metavar="CERT KEY",
    help="Required for addresses other than loopback.",
)
@click.option(
    "--nats", "url", default="", metavar="URL", help="Use this server or cluster instead of starting one."
)
@click.option("--replicas", default=1, type=click.IntRange(1, 5), help="Copies of the log in a cluster.")
@click.option("--token-file", type=FILE, help="The token of the server of --nats.")
@click.option("--tls-ca", default="", metavar="FILE", help="The CA certificate of that server.")
@click.option("--config", type=FILE, help="A group chat's config.yaml: where to listen.")
@click.pass_context
def host(ctx: click.Context, **given: object) -> int:
    """Start the server that stores the chats of members on many machines.

    It listens on this machine only by default. Only you can read the log and the tokens that members need; each token
    is limited to its role. --sync always writes every event to the disk before it counts: safe against a power cut on
    a single server, and several times slower.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from septet.cli.host import HostOptions, run_host

    return run_host(HostOptions(**given))  # pyright: ignore[reportArgumentType]  # click has checked them


@host.command("status", epilog="Example: septet host status --json")
@click.option("--store", type=FILE, help="The folder of the host (under SEPTET_HOME).")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@server_options
def host_status(server: ConnectOptions, as_json: bool) -> int:
    """Show the server, its streams, its members and who conducts which chat."""
    from septet.cli.host import show_status
    from septet.cluster.endpoint import endpoint_of

    return show_status(endpoint_of(server), as_json)


@host.command("invite", epilog="Example: septet host invite laptop --as coder,runner")
@click.argument("name")
@click.option("--as", "roles", required=True, metavar="ROLES", help="The roles that it may serve.")
@click.option("--called", default="", metavar="NAMES", help="Its names in teams that rename their members.")
@click.option("--store", type=FILE, help="The folder of the host (under SEPTET_HOME).")
def host_invite(name: str, roles: str, called: str, store: Path | None) -> int:
    """Make a token for a member: it permits what these roles need and nothing else."""
    from septet.cli.host import run_invite

    return run_invite(store, name, parse_roles(roles), called.split(",") if called else [])


@host.command("dismiss", epilog="Example: septet host dismiss laptop")
@click.argument("name")
@click.option("--store", type=FILE, help="The folder of the host (under SEPTET_HOME).")
def host_dismiss(name: str, store: Path | None) -> int:
    """Revoke a member's token, at once."""
    from septet.cli.host import run_dismiss

    return run_dismiss(store, name)


@click.command(epilog="Example: septet join nats://127.0.0.1:4222 --as coder,runner --token-file TOKEN")
@server_options
@click.option("--as", "roles", required=True, metavar="ROLES", help="The roles to serve: coder,runner,...")
@click.option("--name", default="", help="The name of this member (the machine's name).")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The model, if the team names none.")
@click.option("--unsafe-local", is_flag=True, help="Run code WITHOUT a sandbox, with your rights.")
def join(server: ConnectOptions, roles: str, name: str, model: str, unsafe_local: bool) -> int:
    """Serve roles for chats that are conducted elsewhere.

    Several members may serve one role: they share the turns. If one is killed, another takes over, or the same one
    when it is back. The server may be started later.
    """
    from septet.cli.host import run_member

    return run_member(server, parse_roles(roles), name, model, unsafe_local)


@click.command(
    epilog="Example: septet conduct nats://127.0.0.1:4222 'an analog clock' --token-file TOKEN --yes"
)
@server_options
@click.argument("goal", required=False)
@click.option("--resume", "name", default="", metavar="NAME", help="Continue this chat instead of a new one.")
@click.option("-t", "--team", default="iterate", show_default=True, help="A team's name or a team.yaml.")
@click.option(
    "-C",
    "workspace",
    type=Folder(),
    help="The folder to work in. A project in it goes to the members, without what git ignores and secrets.",
)
@action_option
@run_options
def conduct(server: ConnectOptions, options: Options, **given: object) -> int:
    """Build GOAL with the members that have joined the server at URL.

    If this process dies, the chat can be continued from any machine with --resume NAME. API keys are needed where
    the members are, not here.
    """
    from septet.cli.host import ConductOptions, run_conductor

    if given["name"] and given["workspace"] is not None:
        raise click.UsageError("a chat stays in its folder: leave out -C", click.get_current_context())
    return run_conductor(server, ConductOptions(**given), options)  # pyright: ignore[reportArgumentType]  # click has checked them


@click.command(epilog="Example: septet up team.yaml")
@click.argument("team", default="iterate")
@click.option("--port", type=click.IntRange(0, 65535), help="The server's port (4222). 0: a free port.")
@click.option(
    "--web-port", default=8001, show_default=True, type=click.IntRange(0, 65535), help="The page's port."
)
@click.option("--no-web", is_flag=True, help="Do not start the page.")
@click.option("--store", type=FILE, help="The folder of the log (under SEPTET_HOME).")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The members' model.")
@click.option("--unsafe-local", is_flag=True, help="Run code WITHOUT a sandbox, with your rights.")
def up(team: str, **given: object) -> int:
    """Start a host, a member for each role of TEAM and the page on this machine; stop all of them together.

    A process that dies is restarted.
    """
    from septet.cli.host import UpOptions, run_all

    return run_all(team, UpOptions(**given))  # pyright: ignore[reportArgumentType]  # click has checked them
