"""The distributed group chat's own `config.yaml`, read as it stands: host, manager, writer, editor, client."""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.domain.values import Value
from septet.errors import BadConfig
from septet.team.teams import TEAMS
from septet.tools.documents import parse_document, read_text

MARK = re.compile(r"^(group_chat_manager|writer_agent|editor_agent|client_config)\s*:", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{[^}]*\}")
LAST_PORT = 65535


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


class ClientForm(Value, forbid_unknown_fields=True):
    """What the members think with: Azure where an endpoint or a deployment is named, else OpenAI's wire."""

    model: str = ""
    azure_endpoint: str = ""
    azure_deployment: str = ""
    api_version: str = ""
    api_key: str | None = None
    base_url: str = ""
    temperature: float | None = None
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
    return GroupChatFile(
        hostname=form.host.hostname,
        port=form.host.port,
        team=team_of(form, Path(source).stem),
        environment=variables(form.client_config),
    )


def team_of(form: GroupChatForm, name: str) -> TeamSpec:
    told = {
        "writer": form.writer_agent.system_message,
        "editor": form.editor_agent.system_message,
    }
    built_in = TEAMS["writer-editor"]
    members = tuple(
        with_part(member, told.get(member.role, ""), form.client_config) for member in built_in.members
    )
    return replace(
        built_in, name=name, members=members, budget=Budget(rounds=form.group_chat_manager.max_rounds)
    )


def with_part(member: RoleSpec, told: str, client: ClientForm) -> RoleSpec:
    if member.role == "proxy":
        return member
    return replace(
        member,
        instructions=told or member.instructions,
        model=model_names(client),
        temperature=client.temperature,
    )


def model_names(client: ClientForm) -> tuple[str, ...]:
    """Nothing where the file still holds the placeholders it came with: the model is chosen as in any other chat."""
    azure = client.azure_endpoint or client.azure_deployment
    name = client.azure_deployment or client.model
    if not name or PLACEHOLDER.search(name):
        return ()
    return (f"azure/{name}" if azure else f"openai/{name}",)


def variables(client: ClientForm) -> dict[str, str]:
    azure = client.azure_endpoint or client.azure_deployment
    key = client.api_key or ""
    named = (
        {
            "AZURE_OPENAI_ENDPOINT": client.azure_endpoint,
            "OPENAI_API_VERSION": client.api_version,
            "AZURE_OPENAI_API_KEY": key,
        }
        if azure
        else {"OPENAI_BASE_URL": client.base_url, "OPENAI_API_KEY": key}
    )
    return {name: value for name, value in named.items() if value and not PLACEHOLDER.search(value)}


def each_by_its_own(team: TeamSpec) -> TeamSpec:
    """On many machines every process reads the file itself, or is told otherwise: the chat names no models."""
    return replace(team, members=tuple(replace(member, model=()) for member in team.members))
