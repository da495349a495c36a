"""`init`, `login`, `models` and `keys`: choose a model, check and store API keys, list and download models."""

import sys

import anyio
import click
import msgspec

from septet.cli.output import ask_secret, notify, print_text, put_exactly
from septet.errors import BadUsage


@click.command(epilog="Example: septet init")
def init() -> int:
    """Set up Septet: check this machine, then choose a model: a key, a local server, or the embedded one.

    It changes nothing in the current folder. Without a terminal it only says what works and what is missing.
    """
    from septet.cli.doctor import all_diagnoses, diagnosis_line
    from septet.cli.download import choose_model
    from septet.cli.person import at_terminal
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    async def set_up() -> int:
        findings = await all_diagnoses()
        for finding in findings:
            notify(diagnosis_line(finding))
        async with Models(find_home()) as known:
            choice = await choose_model(known, offer_embedded=False, silent=not at_terminal())
        if choice is None:
            notify("septet: to watch the demo: septet demo clock")
        else:
            notify(f"septet: ready with {choice.name}: {choice.reason}; now: septet 'what you would like'")
        return next((finding.exit_code for finding in findings if finding.failed), 0)

    return anyio.run(set_up)


@click.command(epilog="Example: septet login openai")
@click.argument("provider", required=False)
@click.option("--keyring", is_flag=True, help="Store it in the system's keyring (needs septet[keyring]).")
def login(provider: str | None, keyring: bool) -> int:
    """Ask PROVIDER (openai, anthropic, azure, …) whether it accepts a key, and store the key if it does.

    The key is asked for without echo, or read from standard input. `septet keys rm PROVIDER` deletes it.
    """
    from septet.cli.download import ask_provider, store_checked_key
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    async def check_and_store() -> int:
        async with Models(find_home()) as known:
            if provider is None and not sys.stdin.isatty():
                raise BadUsage("no provider was named", "septet login openai (or anthropic, azure, url)")
            name = provider or await ask_provider()
            known.check_provider(name)
            await store_checked_key(known, name, read_key(name), keyring)
        return 0

    return anyio.run(check_and_store)


def read_key(provider: str) -> str:
    """Read a key: without echo at a terminal, else from standard input."""
    key = ask_secret("API key") if sys.stdin.isatty() else sys.stdin.readline()
    key = key.strip()
    if not key or not key.isprintable():
        raise BadUsage("no key was given", f"septet keys set {provider}, then paste it")
    return key


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

    It is asked for without echo, or read from standard input. `septet login` also asks the provider to check it.
    """
    from septet.settings.home import find_home
    from septet.wiring.models import Models

    models = Models(find_home())
    models.check_provider(provider)
    key = read_key(provider)
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
