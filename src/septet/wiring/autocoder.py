"""`autocoder(dict)`: returns a handle at once, runs in the background, and logs to stderr as configured."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from septet.chat.export import speaker_and_text
from septet.chat.names import chat_name_from_title
from septet.chat.results import Result, result_of
from septet.common.text import clip, printable
from septet.common.values import Value
from septet.domain.events import ChatEnded, Event, Recorded, StopRequested, ToolAnswered
from septet.domain.messages import Request
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage
from septet.models.providers import openai
from septet.models.table import find_provider
from septet.ways.table import TEAMS
from septet.wiring.handle import Handle
from septet.wiring.session import Session, checked_goal, open_session, with_model

LONGEST_LINE = 160


class Project(Value, forbid_unknown_fields=True):
    """The project: all but the goal may be left out. `rounds` is how many actions may be taken."""

    goal: str
    project_name: str = ""
    project_dir: str = ""
    log_level: Literal["normal", "debug", "quiet"] = "normal"
    step: bool = False
    model: str = ""
    api_key: str = ""
    rounds: int = 20


def autocoder(project: Mapping[str, object]) -> Handle:
    """Build what the dict describes, in its folder, until the evidence says done or a bound is reached.

    Comes back at once, also inside a running event loop; `step: True` starts paused.
    """
    wanted = check_project(project)
    return Handle(lambda handle: build(wanted, handle), paused=wanted.step)


def check_project(project: Mapping[str, object]) -> Project:
    """Parse the dict. Raises BadUsage before anything starts, without showing secrets."""
    try:
        wanted = msgspec.convert(dict(project), Project)
    except msgspec.ValidationError as error:
        keys = ", ".join(Project.__struct_fields__)
        raise BadUsage(f"autocoder does not understand its dict ({error})", f"its keys are {keys}") from None
    checked_goal(wanted.goal)
    name = chat_name_from_title(wanted.project_name) if wanted.project_name.strip() else ""
    folder = str(Path(wanted.project_dir).expanduser().absolute()) if wanted.project_dir else ""
    default = f"openai/{openai.DEFAULT_MODEL}" if wanted.api_key else ""
    model = whole_name(wanted.model or os.environ.get("SEPTET_MODEL", "") or default)
    return replace(wanted, model=model, project_dir=folder, project_name=name)


def whole_name(model: str) -> str:
    """Add the provider: a name without one, such as `gpt-3.5-turbo`, is a model of OpenAI."""
    return f"openai/{model}" if model and "/" not in model and ":" not in model else model


async def build(project: Project, handle: Handle) -> Result:
    async with open_session(environment=variables_of_project(project)) as session:
        if project.log_level == "debug":
            session.models.debug_listener = tell_request
        sandbox = await session.sandbox()
        chat = await chat_for(project, session)
        await handle.follow(session.perform(chat, sandbox), teller(project.log_level))
        state = await session.state(chat)
        if handle.stopping and state.ended is None:
            await session.store.append(chat, StopRequested(), after=None)
            state = await session.state(chat)
            ended = ChatEnded(reason="stopped", detail="stopped by the person")
            await session.store.append(chat, ended, after=state.seq)
        return result_of(await session.state(chat))


def variables_of_project(project: Project) -> Mapping[str, str]:
    """The environment with the key in the provider's variable; it is stored nowhere else."""
    provider = find_provider(project.model)[0] if project.model else openai.PROVIDER
    variable = provider.key_variable or openai.PROVIDER.key_variable
    return {**os.environ, **({variable: project.api_key} if variable and project.api_key else {})}


async def chat_for(project: Project, session: Session) -> str:
    """The unfinished chat of that name, or a new one."""
    known = {head.chat for head in await session.store.chats()}
    name = project.project_name
    if name in known and (await session.state(name)).ended is None:
        return name
    spec = with_model(team_for(project), project.model or (await session.models.choose()).name)
    folder = Path(project.project_dir) if project.project_dir else None
    return await session.start(project.goal, spec, folder, "" if name in known else name, words=name)


def team_for(project: Project) -> TeamSpec:
    team = TEAMS["autocoder"]
    return replace(team, budget=replace(team.budget, rounds=project.rounds))


def teller(level: str) -> Callable[[Recorded], None]:
    """Log to stderr: nothing, a line per event, or everything."""

    def tell(recorded: Recorded) -> None:
        who, text = speaker_and_text(recorded)
        if text:
            line = f"{who}: {text if level == 'debug' else brief(recorded.event, text)}"
            sys.stderr.write(f"{printable(line)}\n")

    return tell if level != "quiet" else lambda _: None


def brief(event: Event, text: str) -> str:
    """Shorten a text to one line; of a change, the files and not the diff."""
    if isinstance(event, ToolAnswered) and event.changes:
        text = f"changed {', '.join(change.path for change in event.changes)}"
    return clip(next(iter(text.strip().splitlines()), ""), LONGEST_LINE)


def tell_request(request: Request) -> None:
    for message in request.messages:
        sys.stderr.write(printable(f"[{request.role} {request.step}, {message.role}]\n{message.text}\n"))
