"""`septet web`: serves the web page."""

from pathlib import Path

import click


@click.command(epilog="Example: septet web --port 8001")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0 takes a free port."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Another address needs --token-file.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="The token for the page, of your choice. That of the NATS server is --nats-token-file.",
)
@click.option(
    "--link", is_flag=True, help="Print an address that admits one more browser to the running server."
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The model of new chats.")
@click.option(
    "--nats", "url", default="", metavar="URL", help="Show and conduct the chats of this NATS server."
)
@click.option(
    "--nats-token-file",
    type=click.Path(path_type=Path),
    help="The conductor's token of that server, as `septet host` printed it.",
)
@click.option("--tls-ca", default="", metavar="FILE", help="The CA certificate of that server.")
@click.option(
    "--config", type=click.Path(path_type=Path), help="A group chat's config.yaml: server, team and model."
)
def web(link: bool, **given: object) -> int:
    """Watch and steer the team in a browser, and see what it made.

    The address is printed with a token that opens one browser once; a cookie remembers it. With --nats or --config
    the chats are those of a NATS server, with members on many machines.
    """
    import anyio

    from septet.web.server import ServeOptions, serve_with_options
    from septet.wiring.handle import settle

    settle()
    if link:
        from septet.web.server import print_link

        return print_link(str(given["host"]), int(str(given["port"])))
    return anyio.run(serve_with_options, ServeOptions(**given))  # pyright: ignore[reportArgumentType]  # click has checked them
