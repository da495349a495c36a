"""The distributed group chat's own `config.yaml`, read as it stands: host, manager, writer, editor, client."""

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

MARK = re.compile(r"^(group_chat_manager|writer_agent|editor_agent|client_config)\s*:", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{[^}]*\}")
LAST_PORT = 65535
IDENTITY = "DefaultAzureCredential"
ADDRESSES = {"OPENAI_BASE_URL": "OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT": "AZURE_OPENAI_API_KEY"}
"""Where a server is named, and where its key."""
OWN_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com", "api.openai.com")


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
    """AutoGen's way of saying that the machine's Azure identity is the credential."""

    provider: str = ""
    config: Mapping[str, str | tuple[str, ...]] = {}
    component_type: str = ""
    version: int = 1
    component_version: int = 1
    description: str = ""
    label: str = ""


class ClientForm(Value, forbid_unknown_fields=True):
    """What the members think with: Azure where an endpoint or a deployment is named, else OpenAI's wire."""

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
    """What such a file says. `environment` is what its client section sets where the real environment does not."""

    hostname: str
    port: int
    team: TeamSpec
    environment: Mapping[str, str]


def is_group_chat(text: str) -> bool:
    return MARK.search(text) is not None


def read_group_chat(path: Path) -> GroupChatFile:
    return parse_group_chat(read_text(path), str(path))


def parse_group_chat(text: str, source: str) -> GroupChatFile:
    form = parse_document(text, GroupChatForm, source)
    if form.group_chat_manager.max_rounds < 1:
        raise BadConfig(f"{source}: group_chat_manager.max_rounds must be 1 or more", "fix that value")
    if not 0 <= form.host.port <= LAST_PORT:
        raise BadConfig(f"{source}: {form.host.port} is no port", "fix host.port")
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
    """What a client section says must be possible, and one thing."""
    for name, value in (("timeout", client.timeout), ("max_tokens", client.max_tokens)):
        if value is not None and value <= 0:
            raise BadConfig(f"{source}: client_config.{name} must be greater than 0", "fix that value")
    provider = client.azure_ad_token_provider
    if not provider:
        return
    kind = provider if isinstance(provider, str) else provider.config.get("provider_kind", IDENTITY)
    if kind != IDENTITY:
        raise BadConfig(f"{source}: azure_ad_token_provider can be only {IDENTITY}", "or use azure_ad_token")
    if client.api_key or client.azure_ad_token:
        other = "api_key" if client.api_key else "azure_ad_token"
        raise BadConfig(f"{source}: {other} and azure_ad_token_provider cannot be combined", "leave out one")


def team_from_group_chat(form: GroupChatForm, path: Path) -> TeamSpec:
    told = {
        "writer": form.writer_agent.system_message,
        "editor": form.editor_agent.system_message,
    }
    built_in = TEAMS["writer-editor"]
    members = tuple(
        with_part(member, told.get(member.role, ""), form.client_config) for member in built_in.members
    )
    budget = Budget(rounds=form.group_chat_manager.max_rounds)
    return replace(built_in, name=path.stem, members=members, budget=budget, config=str(path.absolute()))


def with_part(member: RoleSpec, told: str, client: ClientForm) -> RoleSpec:
    if member.stands_for_person:
        return member
    return replace(
        member,
        instructions=told or member.instructions,
        model=model_names(client),
        temperature=client.temperature,
        max_tokens=client.max_tokens,
        timeout=client.timeout,
    )


def model_names(client: ClientForm) -> tuple[str, ...]:
    """Nothing where the file still holds the placeholders it came with: the model is chosen as in any other chat."""
    azure = client.azure_endpoint or client.azure_deployment
    name = client.azure_deployment or client.model
    if not name or PLACEHOLDER.search(name):
        return ()
    return (f"azure/{name}" if azure else f"openai/{name}",)


def client_variables(client: ClientForm) -> dict[str, str]:
    azure = client.azure_endpoint or client.azure_deployment
    key = client.api_key or ""
    named = (
        {
            "AZURE_OPENAI_ENDPOINT": client.azure_endpoint,
            "OPENAI_API_VERSION": client.api_version,
            "AZURE_OPENAI_API_KEY": key,
            "AZURE_OPENAI_AD_TOKEN": client.azure_ad_token or "",
        }
        if azure
        else {"OPENAI_BASE_URL": client.base_url, "OPENAI_API_KEY": key}
    )
    return {name: value for name, value in named.items() if value and not PLACEHOLDER.search(value)}


def client_environment(found: GroupChatFile, environment: Mapping[str, str]) -> dict[str, str]:
    """What the file adds to an environment, which wins. An address of the file gets the file's key and no other.

    Raises BadConfig where a key of the person's own would go to an address that only the file names.
    """
    added = {name: value for name, value in found.environment.items() if not environment.get(name)}
    for address, key in ADDRESSES.items():
        if address not in added:
            continue
        if key in found.environment:
            added[key] = found.environment[key]
        elif not is_trusted(added[address]):
            cause = f"the file of the team {found.team.name} names {added[address]} and no api_key"
            raise BadConfig(cause, f"put the key of that server into it, or set {address} yourself")
    return added


def is_trusted(address: str) -> bool:
    """Servers that a person's own key is made for, and those of this machine."""
    host = urlsplit(address).hostname or ""
    return host.endswith(OWN_HOSTS) or is_loopback(host)


def each_by_its_own(team: TeamSpec) -> TeamSpec:
    """On many machines every process reads the file itself, or is told otherwise: the chat names no models."""
    return replace(team, members=tuple(replace(member, model=()) for member in team.members), config="")
