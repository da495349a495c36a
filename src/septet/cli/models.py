"""`septet models` and `septet keys`: list models, download embedded ones, store API keys."""

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
    """List the models on this machine, and which one would be chosen."""
    if context.invoked_subcommand is not None:
        return 0
    from septet.wiring.models import Models

    async def show() -> int:
        from septet.settings.home import find_home

        async with Models(find_home()) as known:
            overview = await known.overview()
        put_exactly(msgspec.json.encode(overview).decode()) if as_json else print_text(
            "\n".join(overview.lines())
        )
        return 0

    return anyio.run(show)


@models.command(epilog="Example: septet models get")
@click.argument("name", default="")
@click.option("--json", "as_json", is_flag=True, help="JSON lines: progress, notes, and last the result.")
def get(name: str, as_json: bool) -> int:
    """Download an embedded model (without NAME, the best small one). Resumes a partial download; checks the sha256.

    Other models, or other servers that have the same ones, can be added in models.yaml in Septet's settings folder.
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
        notice("interrupted; septet models get resumes the download")
        return 130


@click.group(epilog="Example: septet keys set openai")
def keys() -> None:
    """Store API keys of providers, readable only by you."""


@keys.command("set", epilog="Example: septet keys set openai")
@click.argument("provider")
@click.option("--keyring", is_flag=True, help="Store it in the system's keyring (needs septet[keyring]).")
def set_key(provider: str, keyring: bool) -> int:
    """Store the key of PROVIDER: openai, anthropic, azure, url, or one that an installed package adds.

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
    notify(f"stored the key of {provider} in {'the keyring' if keyring else models.keys.path}")
    return 0


@keys.command("rm", epilog="Example: septet keys rm openai")
@click.argument("provider")
def remove_key(provider: str) -> int:
    """Delete the key of PROVIDER."""
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    Models(find_home()).keys.remove(provider)
    return 0


@keys.command("list", epilog="Example: septet keys list")
def list_keys() -> int:
    """List the providers that have a key; never the keys."""
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    for name in Models(find_home()).keys.names():
        print_text(name)
    return 0
