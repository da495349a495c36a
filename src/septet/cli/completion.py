"""Shell completion: the script that enables it, and the names of chats, versions, teams and models."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from septet.cli.output import put_exactly

if TYPE_CHECKING:
    from septet.wiring.archive import Archive


@click.command(epilog='Example: eval "$(septet completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the script that makes SHELL complete commands, options, and names of chats, versions, teams and models.

    \b
    bash  eval "$(septet completion bash)"      in ~/.bashrc
    zsh   eval "$(septet completion zsh)"       in ~/.zshrc
    fish  septet completion fish | source       in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from septet.cli.main import septet

    completion_class = get_completion_class(shell)
    assert completion_class is not None, "click supports the shells of the choice"
    put_exactly(completion_class(septet, {}, "septet", "_SEPTET_COMPLETE").source())
    return 0


def chat_names(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    """Return the chats with this prefix."""

    async def names(archive: "Archive") -> list[str]:
        return [head.chat for head in await archive.store.chats() if head.chat.startswith(prefix)]

    return read_names(names)


def version_names(context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    """Return the versions of the chat that the command names, newest first."""

    async def names(archive: "Archive") -> list[str]:
        state = await archive.state(await archive.find(str(context.params.get("name") or "")))
        versions = [f"v{number}" for number in range(len(state.work.versions), 0, -1)]
        return [version for version in versions if version.startswith(prefix)]

    return read_names(names)


def read_names(read: "Callable[[Archive], Awaitable[list[str]]]") -> list[str]:
    """Return names from the log; none if it cannot be read, since a shell shows no errors."""
    import anyio

    from septet.errors import SeptetError
    from septet.wiring.archive import open_archive

    async def names() -> list[str]:
        async with open_archive() as archive:
            return await read(archive)

    try:
        return anyio.run(names)
    except SeptetError:
        return []


def team_names(_context: click.Context, _parameter: click.Parameter, prefix: str) -> list[str]:
    """Return the teams with this prefix, and the YAML files of the folder that it names."""
    from pathlib import Path

    from septet.ways.table import all_teams

    folder = Path(prefix).expanduser() if prefix.endswith("/") else Path(prefix).expanduser().parent
    files = sorted(str(path) for path in folder.glob("*.y*ml")) if folder.is_dir() else []
    return [name for name in (*all_teams(), *files) if name.startswith(prefix)]
