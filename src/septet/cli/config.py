"""`config`: shows the settings and where each comes from, and prints the schemas of the settings files."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click
import msgspec
from msgspec.structs import replace

from septet.chat.redaction import MIN_SECRET_LENGTH
from septet.cli.options import Folder
from septet.cli.output import notify, print_text, put_exactly
from septet.common.documents import read_document
from septet.common.values import Value
from septet.errors import BadUsage
from septet.models.http import MAX_ANSWER_BYTES
from septet.models.local.catalogue import WeightsFile
from septet.models.local.download import PUBLIC_INDEX
from septet.models.table import PROVIDERS, installed_providers
from septet.settings.group_chats import GroupChatForm
from septet.settings.home import (
    TELEMETRY_VARIABLE,
    Home,
    find_home,
    set_trusted,
    trusted_folders,
    write_private,
)
from septet.settings.mcp_file import McpFile
from septet.settings.team_files import TeamForm
from septet.wiring.models import MAX_ANSWER_VARIABLE, Models

HIDDEN = "set, not shown"
DEFAULT = "default"
FORMS: Mapping[str, tuple[type[Value], str]] = {
    "team": (TeamForm, "team.yaml: a team, for -t FILE"),
    "group-chat": (
        GroupChatForm,
        "config.yaml: a distributed group chat, for -t FILE and septet host --config",
    ),
    "models": (WeightsFile, "models.yaml: embedded models of your own, in Septet's folder of settings"),
    "mcp": (McpFile, "mcp.json: servers whose tools the assistants may use, in Septet's folder of settings"),
}
VARIABLES = {
    "model": (("SEPTET_MODEL",), "what is found here (septet models)"),
    "bell": (("SEPTET_BELL",), "off"),
    "sandbox": (("SEPTET_SANDBOX",), "the strongest that works here (septet doctor)"),
    "longest_answer": ((MAX_ANSWER_VARIABLE,), f"{MAX_ANSWER_BYTES >> 20}"),
    "embeddings": (("SEPTET_EMBEDDINGS",), "off"),
    "telemetry": ((TELEMETRY_VARIABLE,), "off"),
    "index": (("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"), PUBLIC_INDEX),
    **{
        f"{provider.name}.{variable.setting}": ((variable.name,), variable.default)
        for provider in PROVIDERS
        for variable in provider.variables
        if not variable.secret
    },
}
"""Settings that only environment variables change: the first variable that is set counts."""
SECRETS = {
    **{
        f"{provider.name}.{variable.setting}": variable.name
        for provider in PROVIDERS
        for variable in provider.variables
        if variable.secret
    },
    "cluster.token": "SEPTET_TOKEN",
}
URL_ACCOUNT = re.compile(r"(?<=://)[^/@\s]+(?=@)")
URL_QUERY = re.compile(r"(?<=\?)\S+")


class Setting(Value, omit_defaults=False):
    """A value and its source: `variable NAME`, `file PATH`, or `default`. An empty value means not set."""

    name: str
    value: str
    source: str


async def all_settings(environment: Mapping[str, str] = os.environ) -> list[Setting]:
    """Return everything that can be set outside of a chat. Raises BadConfig if a file cannot be read."""
    home = find_home(environment)
    async with Models(home, environment) as models:
        settings = [
            *folders(home, environment),
            *environment_settings(environment),
            *key_settings(models, environment),
            *files(home),
        ]
        secrets = [secret for secret in models.secrets() if len(secret) >= MIN_SECRET_LENGTH]
    return [replace(setting, value=without_secrets(setting.value, secrets)) for setting in settings]


def folders(home: Home, environment: Mapping[str, str]) -> Iterator[Setting]:
    source = "variable SEPTET_HOME" if environment.get("SEPTET_HOME") else DEFAULT
    for name, path in (("home.data", home.data), ("home.settings", home.config), ("home.cache", home.cache)):
        yield Setting(name=name, value=str(path), source=source)


def environment_settings(environment: Mapping[str, str]) -> Iterator[Setting]:
    for name, (names, default) in VARIABLES.items():
        variable = next((variable for variable in names if environment.get(variable, "").strip()), "")
        value = environment[variable].strip() if variable else default
        yield Setting(name=name, value=value, source=f"variable {variable}" if variable else DEFAULT)


def key_settings(models: Models, environment: Mapping[str, str]) -> Iterator[Setting]:
    """Yield whether each provider has a key, and where: a variable takes precedence over a stored key."""
    stored = models.keys.names()
    for provider in (*PROVIDERS, *installed_providers()):
        if provider.key_variable is None:
            continue
        sources = [f"variable {provider.key_variable}"] if environment.get(provider.key_variable) else []
        sources += [f"file {models.keys.path}"] if provider.name in stored else []
        yield Setting(
            name=f"{provider.name}.key",
            value=HIDDEN if sources else "",
            source=sources[0] if sources else DEFAULT,
        )
    for name, variable in SECRETS.items():
        is_set = bool(environment.get(variable))
        yield Setting(
            name=name, value=HIDDEN if is_set else "", source=f"variable {variable}" if is_set else DEFAULT
        )


def files(home: Home) -> Iterator[Setting]:
    """Yield only the names in the files: commands of servers may contain keys."""
    own, servers = home.config / "models.yaml", home.config / "mcp.json"
    weights = read_document(own, WeightsFile).weights if own.exists() else ()
    server_names = list(read_document(servers, McpFile).servers) if servers.exists() else []
    model_names = [model.name for model in weights]
    for name, path, entries in (("models", own, model_names), ("mcp", servers, server_names)):
        yield Setting(
            name=name, value=", ".join(entries), source=f"file {path}" if path.exists() else DEFAULT
        )


def without_secrets(value: str, secrets: Iterable[str]) -> str:
    """Replace known secrets, and the account and query of URLs, by an ellipsis."""
    for secret in secrets:
        value = value.replace(secret, "…")
    return URL_QUERY.sub("…", URL_ACCOUNT.sub("…", value))


def file_schema(name: str) -> bytes:
    """Return the JSON Schema of a settings file, for editors."""
    form, about = FORMS[name]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": about}
    return msgspec.json.format(msgspec.json.encode({**head, **msgspec.json.schema(form)}), indent=2)


SCHEMAS = ("team", "group-chat", "models", "mcp")


@click.group(epilog="Example: septet config show")
def config() -> None:
    """Show and edit the settings of this machine; print the schemas of the settings files."""


@config.command(epilog="Example: septet config show --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(as_json: bool) -> int:
    """Show every setting, its value, and the variable or file that it comes from. Keys are never shown."""
    import anyio

    from septet.cli.config import all_settings
    from septet.common.text import printable
    from septet.domain.codec import ENCODER

    settings = anyio.run(all_settings)
    width = max(len(setting.name) for setting in settings)
    for setting in settings:
        value = f"{printable(setting.value)}  ({printable(setting.source)})" if setting.value else "not set"
        line = f"{setting.name:<{width}}  {value}"
        put_exactly(ENCODER.encode(setting).decode()) if as_json else print_text(line)
    sys.stdout.flush()
    return 0


@config.command(epilog="Example: septet config schema team > team.schema.json")
@click.argument("form", type=click.Choice(SCHEMAS), default="team")
def schema(form: str) -> int:
    """Print the JSON Schema of team.yaml (team), config.yaml (group-chat), models.yaml (models) or mcp.json (mcp).

    Editors use it to complete and validate: put `# yaml-language-server: $schema=team.schema.json` on the first line.
    """
    from septet.cli.config import file_schema

    put_exactly(file_schema(form).decode())
    sys.stdout.flush()
    return 0


EDITABLE: Mapping[str, tuple[str, type[Value], str]] = {
    "models": (
        "models.yaml",
        WeightsFile,
        "# embedded models of your own: septet config schema models\nweights: []\n",
    ),
    "mcp": ("mcp.json", McpFile, '{"mcpServers": {}}\n'),
}
"""The settings files: name, form, and what a new one begins with."""


@config.command(epilog="Example: septet config edit mcp")
@click.argument("which", type=click.Choice(list(EDITABLE)), default="models")
def edit(which: str) -> int:
    """Open models.yaml (models) or mcp.json (mcp) in your editor, and check it afterwards."""
    name, form, beginning = EDITABLE[which]
    path = find_home().config / name
    if not sys.stdin.isatty():
        raise BadUsage("an editor needs a terminal", f"edit {path} yourself, then: septet config show")
    if not path.exists():
        write_private(path, beginning.encode())
    click.edit(filename=str(path))
    read_document(path, form)
    notify(f"septet: {path} is valid")
    return 0


@click.command(epilog="Examples: septet trust; septet trust --list; septet trust --remove")
@click.argument("folder", type=Folder(), default=".")
@click.option("--remove", is_flag=True, help="Ask again before work is written into FOLDER.")
@click.option("--list", "as_list", is_flag=True, help="List the trusted folders.")
def trust(folder: Path, remove: bool, as_list: bool) -> int:
    """Write finished work into FOLDER (this one) without the question at the end.

    Only work whose checks passed is written; plans are still shown for approval, and `septet undo` takes work back.
    """
    home = find_home()
    if as_list:
        for path in trusted_folders(home):
            print_text(path)
        return 0
    set_trusted(home, folder, not remove)
    if remove:
        notify(f"septet: work is written into {folder} only if you agree")
    else:
        notify(
            f"septet: finished work is written into {folder} without a question (septet undo takes it back)"
        )
    return 0
