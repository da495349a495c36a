"""`septet models` and `septet keys`: what there is to think with, fetching it, and letting it in."""

import sys

import anyio
import click
import msgspec

from septet.cli.output import notify, print_text, put_exactly
from septet.errors import BadUsage


@click.group(invoke_without_command=True, epilog="Example: septet models get qwen2.5-coder-1.5b")
@click.option("--json", "as_json", is_flag=True, help="The same as one JSON object.")
@click.pass_context
def models(context: click.Context, as_json: bool) -> int:
    """What there is to think with on this machine, and what would be chosen."""
    if context.invoked_subcommand is not None:
        return 0
    from septet.wiring.models import Models

    async def show() -> int:
        from septet.settings.home import find_home

        async with Models(find_home()) as known:
            found = await known.overview()
        put_exactly(msgspec.json.encode(found).decode()) if as_json else print_text("\n".join(found.lines()))
        return 0

    return anyio.run(show)


@models.command(epilog="Example: septet models get")
@click.argument("name", default="")
@click.option("--json", "as_json", is_flag=True, help="JSON lines: progress, notes, and last the result.")
def get(name: str, as_json: bool) -> int:
    """Fetch an embedded model (the best small one without NAME). Goes on where it stopped; sha256 is checked.

    Other models, or other servers that have the same ones, are named in models.yaml in Septet's folder of settings.
    """
    from septet.cli.download import fetch_as_json, fetch_embedded, notice
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    async def fetch() -> int:
        async with Models(find_home()) as known:
            wanted = known.embedded.find(name.removeprefix("local/")).name
            path = await (fetch_as_json if as_json else fetch_embedded)(known, wanted)
            if error := known.runtime_error():
                notice(str(error))
        if not as_json:
            print_text(str(path))
        return 0

    try:
        return anyio.run(fetch)
    except KeyboardInterrupt:
        notice("interrupted; septet models get goes on where it stopped")
        return 130


@click.group(epilog="Example: septet keys set openai")
def keys() -> None:
    """Keys of providers, kept where only you can read them."""


@keys.command("set", epilog="Example: septet keys set openai")
@click.argument("provider")
@click.option("--keyring", is_flag=True, help="Keep it in the system's keyring (needs septet[keyring]).")
def set_key(provider: str, keyring: bool) -> int:
    """Keep the key of PROVIDER: openai, anthropic, azure, url, or one that an installed package brings.

    It is asked for without echo, or read from standard input.
    """
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    key = click.prompt("key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    key = str(key).strip()
    if not key or not key.isprintable():
        raise BadUsage("no key was given", f"septet keys set {provider}, then paste it")
    models = Models(find_home())
    models.store_key(provider, key, keyring)
    notify(f"kept for {provider} in {'the keyring' if keyring else models.keys.path}")
    return 0


@keys.command("rm", epilog="Example: septet keys rm openai")
@click.argument("provider")
def remove_key(provider: str) -> int:
    """Forget the key of PROVIDER."""
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    Models(find_home()).keys.remove(provider)
    return 0


@keys.command("list", epilog="Example: septet keys list")
def list_keys() -> int:
    """For whom a key is kept; never the key itself."""
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    for name in Models(find_home()).keys.names():
        print_text(name)
    return 0
