"""What is set on this machine, where and by what; and the forms of the files that people write. No secret is told."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from septet.chat.redaction import MIN_SECRET_LENGTH
from septet.common.documents import read_document
from septet.common.values import Value
from septet.models.http import MAX_ANSWER_BYTES
from septet.models.local.catalogue import WeightsFile
from septet.models.local.download import PUBLIC_INDEX
from septet.models.table import PROVIDERS, installed_providers
from septet.settings.group_chats import GroupChatForm
from septet.settings.home import Home, find_home
from septet.settings.team_files import TeamForm
from septet.wiring.mcp import McpFile
from septet.wiring.models import MAX_ANSWER_VARIABLE, Models

SET = "set, not shown"
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
    "sandbox": (("SEPTET_SANDBOX",), "the strongest that works here (septet doctor)"),
    "longest_answer": ((MAX_ANSWER_VARIABLE,), f"{MAX_ANSWER_BYTES >> 20}"),
    "embeddings": (("SEPTET_EMBEDDINGS",), "off"),
    "index": (("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"), PUBLIC_INDEX),
    **{
        f"{provider.name}.{variable.setting}": ((variable.name,), variable.default)
        for provider in PROVIDERS
        for variable in provider.variables
        if not variable.secret
    },
}
"""Settings that only a variable changes: the first one that is set counts."""
SECRETS = {
    **{
        f"{provider.name}.{variable.setting}": variable.name
        for provider in PROVIDERS
        for variable in provider.variables
        if variable.secret
    },
    "cluster.token": "SEPTET_TOKEN",
}
ACCOUNT = re.compile(r"(?<=://)[^/@\s]+(?=@)")
QUERY = re.compile(r"(?<=\?)\S+")


class Setting(Value, omit_defaults=False):
    """A value and what gave it: `variable NAME`, `file PATH`, or `default`. An empty value is not set."""

    name: str
    value: str
    source: str


async def all_settings(environment: Mapping[str, str] = os.environ) -> list[Setting]:
    """Everything that can be set outside of a chat. Raises BadConfig where a file cannot be read."""
    home = find_home(environment)
    async with Models(home, environment) as models:
        found = [
            *folders(home, environment),
            *environment_settings(environment),
            *key_settings(models, environment),
            *files(home),
        ]
        secrets = [one for one in models.secrets() if len(one) >= MIN_SECRET_LENGTH]
    return [Setting(name=one.name, value=harmless(one.value, secrets), source=one.source) for one in found]


def folders(home: Home, environment: Mapping[str, str]) -> Iterator[Setting]:
    source = "variable SEPTET_HOME" if environment.get("SEPTET_HOME") else DEFAULT
    for name, path in (("home.data", home.data), ("home.settings", home.config), ("home.cache", home.cache)):
        yield Setting(name=name, value=str(path), source=source)


def environment_settings(environment: Mapping[str, str]) -> Iterator[Setting]:
    for name, (names, default) in VARIABLES.items():
        given = next((one for one in names if environment.get(one, "").strip()), "")
        value = environment[given].strip() if given else default
        yield Setting(name=name, value=value, source=f"variable {given}" if given else DEFAULT)


def key_settings(models: Models, environment: Mapping[str, str]) -> Iterator[Setting]:
    """Whether there is one and where: a variable wins over a key that is kept."""
    kept = models.keys.names()
    for provider in (*PROVIDERS, *installed_providers()):
        if provider.key_variable is None:
            continue
        places = [f"variable {provider.key_variable}"] if environment.get(provider.key_variable) else []
        places += [f"file {models.keys.path}"] if provider.name in kept else []
        yield Setting(
            name=f"{provider.name}.key", value=SET if places else "", source=places[0] if places else DEFAULT
        )
    for name, variable in SECRETS.items():
        there = bool(environment.get(variable))
        yield Setting(
            name=name, value=SET if there else "", source=f"variable {variable}" if there else DEFAULT
        )


def files(home: Home) -> Iterator[Setting]:
    """By the names in them: commands of servers may hold keys."""
    own, servers = home.config / "models.yaml", home.config / "mcp.json"
    weights = read_document(own, WeightsFile).weights if own.exists() else ()
    named = list(read_document(servers, McpFile).servers) if servers.exists() else []
    for name, path, known in (("models", own, [one.name for one in weights]), ("mcp", servers, named)):
        yield Setting(name=name, value=", ".join(known), source=f"file {path}" if path.exists() else DEFAULT)


def harmless(value: str, secrets: Iterable[str]) -> str:
    """Without what an address may hold of accounts and tokens, and without any secret that is known."""
    for secret in secrets:
        value = value.replace(secret, "…")
    return QUERY.sub("…", ACCOUNT.sub("…", value))


def file_schema(name: str) -> bytes:
    """The JSON Schema of a file that people write; editors complete and check by it."""
    form, about = FORMS[name]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": about}
    return msgspec.json.format(msgspec.json.encode({**head, **msgspec.json.schema(form)}), indent=2)
