"""Reads the `config.yaml` of AutoGen's distributed group chat unchanged: host, manager, writer, editor, client."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from septet.common.documents import parse_document, read_text
from septet.common.hosts import is_loopback
from septet.common.values import Value
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.errors import BadConfig
from septet.ways.table import TEAMS

SECTION = re.compile(r"^(group_chat_manager|writer_agent|editor_agent|client_config)\s*:", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{[^}]*\}")
MAX_PORT = 65535
AZURE_IDENTITY = "DefaultAzureCredential"
KEY_VARIABLES = {"OPENAI_BASE_URL": "OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT": "AZURE_OPENAI_API_KEY"}
"""Variables of addresses, and the variables of the keys for them."""
TRUSTED_HOSTS = (
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".services.ai.azure.com",
    "api.openai.com",
)


class HostForm(Value, forbid_unknown_fields=True):
    hostname: str = "localhost"
    port: int = 4222


class ManagerForm(Value, forbid_unknown_fields=True):
    topic_type: str = "group_chat"
    max_rounds: int = 6


class AgentForm(Value, forbid_unknown_fields=True):
    topic_type: str = ""
    description: str = ""
    system_message: str = ""


class DelayForm(Value, forbid_unknown_fields=True):
    min: float = 0.0
    max: float = 0.0


class UiForm(Value, forbid_unknown_fields=True):
    """Accepted and not used: tokens are shown when they come, without an artificial delay."""

    topic_type: str = ""
    artificial_stream_delay_seconds: DelayForm = DelayForm()


class TokenProviderForm(Value, forbid_unknown_fields=True):
    """AutoGen's form for the machine's Azure identity as credential."""

    provider: str = ""
    config: Mapping[str, str | tuple[str, ...]] = {}
    component_type: str = ""
    version: int = 1
    component_version: int = 1
    description: str = ""
    label: str = ""


class ClientForm(Value, forbid_unknown_fields=True):
    """The model of the members: Azure if an endpoint or a deployment is named, else the OpenAI API."""

    model: str = ""
    azure_endpoint: str = ""
    azure_deployment: str = ""
    api_version: str = ""
    api_key: str | None = None
    base_url: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    azure_ad_token: str | None = None
    azure_ad_token_provider: str | TokenProviderForm | None = None
    model_capabilities: Mapping[str, bool] | UnsetType = UNSET
    model_info: Mapping[str, bool | str] | UnsetType = UNSET


class GroupChatForm(Value, forbid_unknown_fields=True):
    host: HostForm = HostForm()
    group_chat_manager: ManagerForm = ManagerForm()
    writer_agent: AgentForm = AgentForm()
    editor_agent: AgentForm = AgentForm()
    ui_agent: UiForm = UiForm()
    client_config: ClientForm = ClientForm()


class GroupChatFile(Value):
    """The content of such a file. `environment` are variables of its client section; the real environment wins."""

    hostname: str
    port: int
    team: TeamSpec
    environment: Mapping[str, str]


def is_group_chat(text: str) -> bool:
    return SECTION.search(text) is not None


def read_group_chat(path: Path) -> GroupChatFile:
    return parse_group_chat(read_text(path), str(path))


def parse_group_chat(text: str, source: str) -> GroupChatFile:
    form = parse_document(text, GroupChatForm, source)
    if form.group_chat_manager.max_rounds < 1:
        raise BadConfig(f"{source}: group_chat_manager.max_rounds must be 1 or more", "fix that value")
    if not 0 <= form.host.port <= MAX_PORT:
        raise BadConfig(f"{source}: {form.host.port} is not a valid port", "fix host.port")
    if not form.host.hostname.strip():
        raise BadConfig(f"{source}: host.hostname is empty", "write localhost or an address")
    check_client(form.client_config, source)
    return GroupChatFile(
        hostname=form.host.hostname,
        port=form.host.port,
        team=team_from_group_chat(form, Path(source)),
        environment=client_variables(form.client_config),
    )


def check_client(client: ClientForm, source: str) -> None:
    """Raise BadConfig if values of the client section are invalid or contradict each other."""
    for name, value in (("timeout", client.timeout), ("max_tokens", client.max_tokens)):
        if value is not None and value <= 0:
            raise BadConfig(f"{source}: client_config.{name} must be greater than 0", "fix that value")
    provider = client.azure_ad_token_provider
    if not provider:
        return
    kind = provider if isinstance(provider, str) else provider.config.get("provider_kind", AZURE_IDENTITY)
    if kind != AZURE_IDENTITY:
        raise BadConfig(
            f"{source}: azure_ad_token_provider can be only {AZURE_IDENTITY}", "or use azure_ad_token"
        )
    if client.api_key or client.azure_ad_token:
        other = "api_key" if client.api_key else "azure_ad_token"
        raise BadConfig(f"{source}: {other} and azure_ad_token_provider cannot be combined", "leave out one")


def team_from_group_chat(form: GroupChatForm, path: Path) -> TeamSpec:
    instructions = {
        "writer": form.writer_agent.system_message,
        "editor": form.editor_agent.system_message,
    }
    built_in = TEAMS["writer-editor"]
    members = tuple(
        with_settings(member, instructions.get(member.role, ""), form.client_config)
        for member in built_in.members
    )
    budget = Budget(rounds=form.group_chat_manager.max_rounds)
    return replace(built_in, name=path.stem, members=members, budget=budget, config=str(path.absolute()))


def with_settings(member: RoleSpec, instructions: str, client: ClientForm) -> RoleSpec:
    if member.stands_for_person:
        return member
    return replace(
        member,
        instructions=instructions or member.instructions,
        model=model_names(client),
        temperature=client.temperature,
        max_tokens=client.max_tokens,
        timeout=client.timeout,
    )


def model_names(client: ClientForm) -> tuple[str, ...]:
    """The model; empty if the file still has its placeholders: then it is chosen as in any other chat."""
    azure = client.azure_endpoint or client.azure_deployment
    name = client.azure_deployment or client.model
    if not name or PLACEHOLDER.search(name):
        return ()
    return (f"azure/{name}" if azure else f"openai/{name}",)


def client_variables(client: ClientForm) -> dict[str, str]:
    azure = client.azure_endpoint or client.azure_deployment
    key = client.api_key or ""
    variables = (
        {
            "AZURE_OPENAI_ENDPOINT": client.azure_endpoint,
            "OPENAI_API_VERSION": client.api_version,
            "AZURE_OPENAI_API_KEY": key,
            "AZURE_OPENAI_AD_TOKEN": client.azure_ad_token or "",
        }
        if azure
        else {"OPENAI_BASE_URL": client.base_url, "OPENAI_API_KEY": key}
    )
    return {name: value for name, value in variables.items() if value and not PLACEHOLDER.search(value)}


def client_environment(file: GroupChatFile, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that the file adds to an environment, which wins. An address in the file gets only the file's key.

    Raises BadConfig if a key of the person would be sent to an address that only the file names.
    """
    added = {name: value for name, value in file.environment.items() if not environment.get(name)}
    for address, key in KEY_VARIABLES.items():
        if address not in added:
            continue
        if key in file.environment:
            added[key] = file.environment[key]
        elif not is_trusted(added[address]):
            cause = f"the file of the team {file.team.name} names {added[address]} and no api_key"
            raise BadConfig(cause, f"put the key of that server into it, or set {address} yourself")
    return added


def is_trusted(address: str) -> bool:
    """Whether the person's own key may be sent there: to OpenAI, Azure or this machine."""
    host = urlsplit(address).hostname or ""
    return host.endswith(TRUSTED_HOSTS) or is_loopback(host)


def without_models(team: TeamSpec) -> TeamSpec:
    """The team without models and file: in a cluster each process chooses its models itself."""
    return replace(team, members=tuple(replace(member, model=()) for member in team.members), config="")
