"""`septet web`: the page, served from this machine to its own browser."""

from pathlib import Path

import click


@click.command(epilog="Example: septet web --port 8001")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs --token-file.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="The page's own token, of your choice: it lets people in. The server's is --nats-token-file.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="What new chats think with.")
@click.option("--nats", "url", default="", metavar="URL", help="Show and conduct the chats of this server.")
@click.option(
    "--nats-token-file",
    type=click.Path(path_type=Path),
    help="The conductor's token of that server, as `septet host` printed it.",
)
@click.option("--tls-ca", default="", metavar="FILE", help="The certificate that signed that server's.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="A group chat's config.yaml: server, team and model."
)
def web(**given: object) -> int:
    """Watch the team in a browser, steer it and see what it made.

    The address is printed with a token that opens one browser once; a cookie remembers it. With --nats or --config
    the chats are those of a server where members of many machines meet.
    """
    import anyio

    from septet.web.server import ServeOptions, serve_with_options
    from septet.wiring.handle import settle

    settle()
    return anyio.run(serve_with_options, ServeOptions(**given))  # pyright: ignore[reportArgumentType]  # click has checked them
