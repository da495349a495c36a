"""Completion for shells: the script that turns it on, and the names of chats."""

import click

from septet.cli.output import put_exactly


@click.command(epilog='Example: eval "$(septet completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print what makes SHELL complete commands, options and names of chats.

    \b
    bash  eval "$(septet completion bash)"      in ~/.bashrc
    zsh   eval "$(septet completion zsh)"       in ~/.zshrc
    fish  septet completion fish | source       in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from septet.cli.main import septet

    known = get_completion_class(shell)
    assert known is not None, "click knows the shells that are offered"
    put_exactly(known(septet, {}, "septet", "_SEPTET_COMPLETE").source())
    return 0


def chat_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """The chats whose names begin like that; none where the log cannot be read: a shell wants no complaints."""
    import anyio

    from septet.errors import SeptetError
    from septet.wiring.session import open_session

    async def names() -> list[str]:
        async with open_session() as session:
            return [head.chat for head in await session.store.chats() if head.chat.startswith(begun)]

    try:
        return anyio.run(names)
    except SeptetError:
        return []
