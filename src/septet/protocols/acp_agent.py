"""An agent of the Agent Client Protocol: editors drive chats, see plans, edits and runs, and permit deliveries."""

import re
import secrets
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from pathlib import Path

import anyio
from acp import PROTOCOL_VERSION, RequestError, run_agent
from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_user_message_text,
)
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AgentPlanUpdate,
    AllowedOutcome,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
    ToolCallStart,
    ToolCallUpdate,
)

from septet.chat.names import CHAT_NAME
from septet.chat.results import ending_text
from septet.domain.events import (
    EvidenceFound,
    PersonSpoke,
    PlanProposed,
    Recorded,
    RunFinished,
    VersionWritten,
)
from septet.domain.state import State
from septet.errors import BadUsage, SeptetError, as_septet_error
from septet.protocols.conversation import Message, Turn, TurnText, take_message
from septet.ways.endings import ending, is_finished
from septet.wiring.chat_runner import ChatService, open_chat_service, team_for_person
from septet.wiring.session import open_session

DELIVER = PermissionOption(option_id="deliver", name="Write it into the folder", kind="allow_once")
LEAVE = PermissionOption(option_id="leave", name="Leave the folder as it is", kind="reject_once")
MAX_OUTPUT = 4000
NEW_NAME = re.compile(r"editor-[0-9a-f]{10}")
"""The names that `session/new` gives."""


class EditorSession:
    """A conversation of an editor. Its id is the name of its chat, which begins with the first prompt."""

    def __init__(self, folder: Path, team: str) -> None:
        self.folder = folder
        self.team = team
        self.scope: anyio.CancelScope | None = None


class ChatAgent:
    """What an editor calls."""

    def __init__(self, service: ChatService) -> None:
        self.service = service
        self.session = service.session
        self._sessions: dict[str, EditorSession] = {}
        self._client: Client | None = None

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    @property
    def client(self) -> Client:
        assert self._client is not None, "a request comes over a connection"
        return self._client

    async def initialize(self, protocol_version: int, **given: object) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION)
            if protocol_version > 0
            else PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True),
            agent_info=Implementation(name="septet", title="Septet", version=installed_version("septet")),
        )

    async def new_session(self, cwd: str, **given: object) -> NewSessionResponse:
        name = f"editor-{secrets.token_hex(5)}"
        self._sessions[name] = EditorSession(checked_folder(cwd), self.session.default_team)
        return NewSessionResponse(session_id=name, modes=self._modes(name))

    async def load_session(self, cwd: str, session_id: str, **given: object) -> LoadSessionResponse:
        """Any chat, whoever started it: what was said and done is told again. One of ours may not have begun yet."""
        log = await self._log(session_id)
        if not log and NEW_NAME.fullmatch(session_id):
            self._sessions[session_id] = EditorSession(checked_folder(cwd), self.session.default_team)
            return LoadSessionResponse(modes=self._modes(session_id))
        if not log:
            raise RequestError.invalid_params({"reason": f"there is no chat '{session_id[:80]}'"})
        text = TurnText(State(chat=session_id))
        self._sessions[session_id] = EditorSession(checked_folder(cwd), "")
        for recorded in log:
            if isinstance(recorded.event, PersonSpoke):
                await self.client.session_update(session_id, update_user_message_text(recorded.event.text))
            await self._show(session_id, text, recorded)
        self._sessions[session_id].team = text.state.team.name
        await self._say(session_id, text.closing())
        return LoadSessionResponse(modes=self._modes(session_id))

    async def set_session_mode(
        self, session_id: str, mode_id: str, **given: object
    ) -> SetSessionModeResponse:
        """Modes are teams; a chat that has begun keeps its own."""
        if mode_id not in self.session.teams or await self._log(session_id):
            raise RequestError.invalid_params({"reason": "no such team, or the chat has begun with another"})
        self._session(session_id).team = mode_id
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: Sequence[object], **given: object) -> PromptResponse:
        """The person's words: a goal, an answer or an instruction; until the team asks, or the chat ends."""
        open_ = self._session(session_id)
        try:
            with anyio.CancelScope() as scope:
                open_.scope = scope
                turn = await self._turn(session_id, open_, "\n".join(map(block_text, prompt)))
                await self._offer_delivery(session_id, await self._play(session_id, turn))
                return PromptResponse(stop_reason="end_turn")
        except SeptetError as error:
            raise RequestError(-32602 if isinstance(error, BadUsage) else -32603, str(error)) from error
        except ExceptionGroup as group:
            raise RequestError(-32603, str(as_septet_error(group))) from group
        finally:
            open_.scope = None
        return PromptResponse(stop_reason="cancelled")

    async def cancel(self, session_id: str, **given: object) -> None:
        """Pause the chat; the next prompt goes on."""
        if (open_ := self._sessions.get(session_id)) and open_.scope is not None:
            open_.scope.cancel()

    async def _turn(self, name: str, open_: EditorSession, text: str) -> Turn:
        if await self._log(name):
            return await take_message(self.service, Message(text=text, chat=name))
        await self.service.runner.sandbox()
        team = team_for_person(await self.service.team(open_.team))
        return Turn(start=await self.service.state(await self.session.start(text, team, open_.folder, name)))

    async def _play(self, name: str, turn: Turn) -> State:
        text = TurnText(turn.start)
        async with self.service.follow(turn.start) as items:
            async for item in items:
                if isinstance(item, Recorded):
                    await self._show(name, text, item)
                elif item.text:
                    await self.client.session_update(name, update_agent_thought_text(item.text))
        await self._say(name, text.closing())
        return text.state

    async def _show(self, name: str, text: TurnText, recorded: Recorded) -> None:
        before, line = text.state, text.add(recorded)
        event = recorded.event
        if isinstance(event, PlanProposed | EvidenceFound):
            await self.client.session_update(name, plan_of(text.state))
        if isinstance(event, VersionWritten):
            await self.client.session_update(name, await self._edit(before, event))
        elif isinstance(event, RunFinished):
            await self.client.session_update(name, run_call(event, recorded.seq))
        elif line:
            await self._say(name, line)

    async def _edit(self, before: State, version: VersionWritten) -> ToolCallStart:
        """A version as a tool call, with the diff of each file that it changes."""
        old = {file.path: file.sha256 for file in before.work.version.files} if before.work.version else {}
        changed = [file for file in version.files if file.sha256 and old.get(file.path) != file.sha256]
        diffs = [
            tool_diff_content(
                str(Path(before.workspace) / file.path),
                await self._text(file.sha256),
                await self._text(old[file.path]) if old.get(file.path) else None,
            )
            for file in changed
        ]
        title = f"version {version.number}: {', '.join(file.path for file in changed)[:200]}"
        return start_tool_call(f"v{version.number}", title, kind="edit", status="completed", content=diffs)

    async def _text(self, address: str) -> str:
        return (await self.session.blobs.get(address)).decode(errors="replace")

    async def _offer_delivery(self, name: str, state: State) -> None:
        """Ask whether finished work is to be written into the folder."""
        ended = ending(state)
        if state.base is None or state.work.version is None or ended is None or not is_finished(state):
            return
        diffs = await (await self.session.delivery(state)).file_diffs()
        if not diffs:
            return
        diff = tool_content(text_block("\n".join(diffs.values())[:MAX_OUTPUT]))
        title = f"write {', '.join(diffs)[:200]} ({ending_text(state, ended)})"
        call = ToolCallUpdate(tool_call_id="deliver", title=title, kind="edit", content=[diff])
        answer = await self.client.request_permission(name, call, [DELIVER, LEAVE])
        if isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == DELIVER.option_id:
            await self.session.deliver(name)
            await self._say(name, f"written into {state.workspace} (septet undo {name} takes it back)")

    async def _say(self, name: str, text: str) -> None:
        await self.client.session_update(name, update_agent_message_text(text))

    async def _log(self, name: str) -> list[Recorded]:
        return await self.session.log(name) if CHAT_NAME.fullmatch(name) else []

    def _session(self, name: str) -> EditorSession:
        if name not in self._sessions:
            raise RequestError.invalid_params({"reason": "no such session: use session/new or session/load"})
        return self._sessions[name]

    def _modes(self, name: str) -> SessionModeState:
        modes = [SessionMode(id=team, name=team) for team in self.session.teams]
        return SessionModeState(current_mode_id=self._sessions[name].team, available_modes=modes)


def checked_folder(cwd: str) -> Path:
    folder = Path(cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise RequestError.invalid_params({"reason": f"'{cwd[:200]}' is no absolute path of a folder"})
    return folder


def block_text(block: object) -> str:
    """The words of a prompt's block; a link is its address. Raises RequestError for pictures and sounds."""
    text = getattr(block, "text", None) or getattr(block, "uri", None)
    text = text or getattr(getattr(block, "resource", None), "text", None)
    if not isinstance(text, str):
        raise RequestError.invalid_params({"reason": "only text can be used"})
    return text


def plan_of(state: State) -> AgentPlanUpdate:
    items = state.plan.current.items if state.plan.current else ()
    met = {item for item, found in state.work.evidence.items() if found.passed}
    return update_plan(
        plan_entry(item.text, status="completed" if item.id in met else "pending") for item in items
    )


def run_call(run: RunFinished, seq: int) -> ToolCallStart:
    output = f"{run.result.stdout}{run.result.stderr}"[-MAX_OUTPUT:]
    content = [tool_content(text_block(f"{run.result.ending}\n{output}".strip()))]
    status = "completed" if run.result.succeeded else "failed"
    return start_tool_call(
        f"run-{seq}", f"{run.title}: {run.command}", kind="execute", status=status, content=content
    )


async def serve_acp(model: str) -> int:
    """Serve the editor at the other end of our standard input and output until it closes them."""
    async with open_session() as session, open_chat_service(session, model) as service:
        await run_agent(ChatAgent(service))  # pyright: ignore[reportArgumentType]  # what it lacks is answered as an unknown method
    return 0
