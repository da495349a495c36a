"""`septet web`: the page, served from this machine to its own browser."""

from pathlib import Path

import click


@click.command(epilog="Example: septet web --port 8001")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs --token-file.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), help="A file with the token that lets people in."
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="What new chats think with.")
def web(port: int, host: str, token_file: Path | None, no_open: bool, model: str) -> int:
    """Watch the team in a browser, steer it and see what it made.

    The address is printed with a token that opens one browser once; a cookie remembers it.
    """
    import anyio

    from septet.web.serving import Address, serve

    return anyio.run(serve, Address(host=host, port=port, token_file=token_file), model, not no_open)
