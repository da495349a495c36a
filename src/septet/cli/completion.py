"""Shell completion: the script that enables it, and the names of chats."""

import click

from septet.cli.output import put_exactly


@click.command(epilog='Example: eval "$(septet completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the script that makes SHELL complete commands, options and names of chats.

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
    """Return the chats with this prefix; none if the log cannot be read, since a shell shows no errors."""
    import anyio

    from septet.errors import SeptetError
    from septet.wiring.archive import open_archive

    async def names() -> list[str]:
        async with open_archive() as archive:
            return [head.chat for head in await archive.store.chats() if head.chat.startswith(prefix)]

    try:
        return anyio.run(names)
    except SeptetError:
        return []
