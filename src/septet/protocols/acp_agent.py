"""An agent of the Agent Client Protocol: editors drive chats, see plans, edits and runs, and permit deliveries."""

import os
import re
import secrets
import sys
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader, StreamWriter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path

import anyio
import msgspec
from acp import PROTOCOL_VERSION, RequestError, run_agent, stdio_streams
from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    tool_terminal_ref,
    update_agent_message_text,
    update_agent_thought_text,
    update_available_commands,
    update_plan,
    update_user_message_text,
)
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AgentPlanUpdate,
    AllowedOutcome,
    AvailableCommand,
    ClientCapabilities,
    ContentToolCallContent,
    EnvVariable,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionModeResponse,
    TerminalToolCallContent,
    ToolCallStart,
    ToolCallUpdate,
)

from septet.chat.names import CHAT_NAME
from septet.chat.results import ending_text, run_outcome, summary
from septet.chat.versions import version_diff, version_named
from septet.domain.events import (
    EvidenceFound,
    PersonSpoke,
    PlanProposed,
    Recorded,
    RunFinished,
    VersionWritten,
)
from septet.domain.runs import CONTROLS
from septet.domain.state import State
from septet.errors import BadUsage, SeptetError, as_septet_error
from septet.protocols.conversation import Message, Turn, TurnText, checks_text, take_message
from septet.ways.endings import ending, is_finished
from septet.wiring.chat_runner import ChatService, open_chat_service, team_for_person
from septet.wiring.session import open_session
from septet.wiring.trial import check_newest

DELIVER = PermissionOption(option_id="deliver", name="Write it into the folder", kind="allow_once")
LEAVE = PermissionOption(option_id="leave", name="Leave the folder as it is", kind="reject_once")
MAX_OUTPUT = 4000
MAX_LISTED = 100
MAX_LINE = 16 << 20
TERMINAL_SECONDS = 10.0
COMMANDS = {
    "status": "How the chat stands: plan, evidence, cost",
    "diff": "What the chat changes in the folder",
    "checks": "Run the plan's checks on the newest version again, in a copy",
    "deliver": "Write the work into the folder, after a question",
    "undo": "Take the newest delivery back",
    "stop": "End the chat",
}
"""What begins with a slash in a prompt; anything else is for the team."""
NEW_NAME = re.compile(r"editor-[0-9a-f]{10}")
"""The names that `session/new` gives."""


class EditorSession:
    """A conversation of an editor. Its id is the name of its chat, which begins with the first prompt."""

    def __init__(self, folder: Path, team: str) -> None:
        self.folder = folder
        self.team = team
        self.prompts: set[anyio.CancelScope] = set()
        """Those that are being answered."""


class ChatAgent:
    """What an editor calls."""

    def __init__(self, service: ChatService) -> None:
        self.service = service
        self.session = service.session
        self._sessions: dict[str, EditorSession] = {}
        self._client: Client | None = None
        self._has_terminals = False

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    @property
    def client(self) -> Client:
        assert self._client is not None, "a request comes over a connection"
        return self._client

    async def initialize(
        self, protocol_version: int, client_capabilities: ClientCapabilities | None = None, **given: object
    ) -> InitializeResponse:
        self._has_terminals = bool(client_capabilities and client_capabilities.terminal)
        offers = SessionCapabilities(list=SessionListCapabilities(), resume=SessionResumeCapabilities())
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION)
            if protocol_version > 0
            else PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=True, session_capabilities=offers),
            agent_info=Implementation(name="septet", title="Septet", version=installed_version("septet")),
        )

    async def new_session(self, cwd: str, **given: object) -> NewSessionResponse:
        name = f"editor-{secrets.token_hex(5)}"
        self._sessions[name] = EditorSession(checked_folder(cwd), self.session.default_team)
        await self._offer_commands(name)
        return NewSessionResponse(session_id=name, modes=self._modes(name))

    async def list_sessions(self, cwd: str | None = None, **given: object) -> ListSessionsResponse:
        """The chats, the newest first, in one folder or in all."""
        heads = await self.session.store.chats(MAX_LISTED)
        states = [(head, await self.session.state(head.chat)) for head in heads]
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=head.chat,
                    cwd=state.workspace,
                    title=" ".join(state.goal.split())[:200],
                    updated_at=datetime.fromtimestamp(head.changed, UTC).isoformat(),
                )
                for head, state in states
                if cwd is None or state.workspace == cwd
            ]
        )

    async def resume_session(self, cwd: str, session_id: str, **given: object) -> ResumeSessionResponse:
        """A chat goes on with the next prompt; what was said is not told again."""
        if not await self._log(session_id):
            raise RequestError.invalid_params({"reason": f"there is no chat '{session_id[:80]}'"})
        team = (await self.service.state(session_id)).team.name
        self._sessions[session_id] = EditorSession(checked_folder(cwd), team)
        await self._offer_commands(session_id)
        return ResumeSessionResponse(modes=self._modes(session_id))

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
            await self._show(session_id, text, recorded, live=False)
        self._sessions[session_id].team = text.state.team.name
        await self._say(session_id, text.closing("`/deliver`"))
        await self._offer_commands(session_id)
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
        scope = anyio.CancelScope()
        open_.prompts.add(scope)
        try:
            with scope:
                await self._answer(session_id, open_, "\n".join(map(block_text, prompt)))
                return PromptResponse(stop_reason="end_turn")
        except SeptetError as error:
            raise RequestError(-32602 if isinstance(error, BadUsage) else -32603, str(error)) from error
        except ExceptionGroup as group:
            raise RequestError(-32603, str(as_septet_error(group))) from group
        finally:
            open_.prompts.remove(scope)
        return PromptResponse(stop_reason="cancelled")

    async def cancel(self, session_id: str, **given: object) -> None:
        """Pause the chat; the next prompt goes on."""
        if open_ := self._sessions.get(session_id):
            for scope in open_.prompts:
                scope.cancel()

    async def _answer(self, name: str, open_: EditorSession, text: str) -> None:
        word = text.strip().removeprefix("/")
        if text.lstrip().startswith("/") and word in COMMANDS:
            await self._obey(name, word)
            return
        turn = await self._turn(name, open_, text)
        await self._offer_delivery(name, await self._play(name, turn))

    async def _obey(self, name: str, command: str) -> None:
        """Do what a slash command says, in a chat that has begun."""
        if not await self._log(name):
            raise BadUsage("the chat has not begun", "say first what you would like")
        state = await self.service.state(name)
        match command:
            case "diff":
                await self._say(name, f"```diff\n{await self._diff(state)}\n```")
            case "checks":
                await self._say(name, as_block(checks_text(await check_newest(self.session, name))))
            case "deliver":
                if not await self._offer_delivery(name, state):
                    await self._say(name, "there is nothing to write")
            case "undo":
                await self.session.undo(name)
                await self._say(name, "the newest delivery is taken back")
            case "stop":
                await self.service.stop(state)
                await self._say(name, "the chat is ended")
            case _:
                await self._say(name, as_block(summary(state)))

    async def _diff(self, state: State) -> str:
        """What the newest version changes: in the folder, else since the version before."""
        if state.base is not None and state.work.version is not None:
            return await (await self.session.delivery(state)).diff()
        newest = version_named(state, str(len(state.work.versions)))
        return await version_diff(
            version_named(state, str(max(1, newest.number - 1))), newest, self.session.blobs
        )

    async def _offer_commands(self, name: str) -> None:
        commands = [AvailableCommand(name=word, description=text) for word, text in COMMANDS.items()]
        await self.client.session_update(name, update_available_commands(commands))

    async def _turn(self, name: str, open_: EditorSession, text: str) -> Turn:
        if await self._log(name):
            return await take_message(self.service, Message(text=text, chat=name))
        team = team_for_person(await self.service.team(open_.team))
        return Turn(start=await self.service.start(text, team, open_.folder, name))

    async def _play(self, name: str, turn: Turn) -> State:
        text = TurnText(turn.start)
        async with self.service.follow(turn.start) as items:
            async for item in items:
                if isinstance(item, Recorded):
                    await self._show(name, text, item)
                elif item.text:
                    await self.client.session_update(name, update_agent_thought_text(item.text))
        await self._say(name, text.closing("`/deliver`"))
        return text.state

    async def _show(self, name: str, text: TurnText, recorded: Recorded, live: bool = True) -> None:
        before, line = text.state, text.add(recorded)
        event = recorded.event
        if isinstance(event, PlanProposed | EvidenceFound):
            await self.client.session_update(name, plan_of(text.state))
        if isinstance(event, VersionWritten):
            await self.client.session_update(name, await self._edit(before, event))
        elif isinstance(event, RunFinished):
            terminal = await self._terminal(text.state, event) if live else None
            call = run_call(event, recorded.seq, terminal)
            await self.client.session_update(name, call)
        elif line:
            await self._say(name, line)

    async def _terminal(self, state: State, run: RunFinished) -> TerminalToolCallContent | None:
        """A terminal of the editor that shows the run's whole output. The program itself ran in our sandbox, and no
        editor's terminal is one.
        """
        has_output = run.purpose not in CONTROLS and (run.result.stdout or run.result.stderr)
        if not self._has_terminals or not has_output:
            return None
        shown = ["-m", "septet", "show", state.chat, "--output", run.id]
        home = [
            EnvVariable(name=name, value=os.environ[name]) for name in ("SEPTET_HOME",) if name in os.environ
        ]
        try:
            made = await self.client.create_terminal(state.chat, sys.executable, args=shown, env=home)
            with anyio.move_on_after(TERMINAL_SECONDS):
                await self.client.wait_for_terminal_exit(state.chat, made.terminal_id)
            await self.client.release_terminal(state.chat, made.terminal_id)
        except RequestError:  # an editor that offers them and refuses one
            return None
        return tool_terminal_ref(made.terminal_id)

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

    async def _offer_delivery(self, name: str, state: State) -> bool:
        """Ask whether finished work is to be written into the folder; whether there was anything to ask."""
        ended = ending(state)
        if state.base is None or state.work.version is None or ended is None or not is_finished(state):
            return False
        diffs = await (await self.session.delivery(state)).file_diffs()
        if not diffs:
            return False
        diff = tool_content(text_block("\n".join(diffs.values())[:MAX_OUTPUT]))
        title = f"write {', '.join(diffs)[:200]} ({ending_text(state, ended)})"
        call = ToolCallUpdate(tool_call_id="deliver", title=title, kind="edit", content=[diff])
        answer = await self.client.request_permission(name, call, [DELIVER, LEAVE])
        if isinstance(answer.outcome, AllowedOutcome) and answer.outcome.option_id == DELIVER.option_id:
            await self.session.deliver(name)
            await self._say(name, f"written into {state.workspace} (septet undo {name} takes it back)")
        return True

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


def run_call(run: RunFinished, seq: int, terminal: TerminalToolCallContent | None) -> ToolCallStart:
    """A run as a command: its output in a terminal of the editor, else its end as text. A run that has to fail, as
    one of the tests without the program, is completed when it does.
    """
    outcome = run_outcome(run)
    status = "completed" if outcome.good else "failed"
    output = "" if terminal else f"\n{run.result.stdout}{run.result.stderr}"[-MAX_OUTPUT:]
    content: list[ContentToolCallContent | TerminalToolCallContent] = [
        tool_content(text_block(f"{outcome.text}{output}".strip()))
    ]
    content += [terminal] if terminal else []
    return start_tool_call(
        f"run-{seq}", f"{run.title}: {run.command}", kind="execute", status=status, content=content
    )


def as_block(text: str) -> str:
    return f"```\n{text.replace('```', '` ` `')}\n```"


class Frame(msgspec.Struct):
    """What every message of JSON-RPC is, before anybody looks at what it says."""

    id: int | str | None = None
    method: str | None = None
    params: dict[str, object] | list[object] | None = None


FRAME_DECODER = msgspec.json.Decoder(Frame)
MESSAGE_DECODER = msgspec.json.Decoder(dict[str, object])


class Lines:
    """A message a line, by standard input and output. What is none is answered with the protocol's error, and the next
    one is read: the package would end.
    """

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> dict[str, object] | None:
        while (line := await self._line()) != b"":
            if line is None:
                await self._refuse(-32600, f"a message has at most {MAX_LINE:,} bytes")
            elif line.strip():
                try:
                    FRAME_DECODER.decode(line)
                    return MESSAGE_DECODER.decode(line)
                except msgspec.ValidationError as error:
                    await self._refuse(-32600, str(error))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    await self._refuse(-32700, str(error))
        return None

    async def send(self, message: dict[str, object]) -> None:
        self._writer.write(msgspec.json.encode(message) + b"\n")
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()

    async def _line(self) -> bytes | None:
        """The next line; empty at the end of the input, None for one that is too long."""
        too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                too_long = True
            except IncompleteReadError as error:
                return error.partial
            else:
                return None if too_long else line

    async def _refuse(self, code: int, text: str) -> None:
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})


async def serve_acp(model: str) -> int:
    """Serve the editor at the other end of our standard input and output until it closes them."""
    async with open_session() as session, open_chat_service(session, model) as service:
        reader, writer = await stdio_streams(MAX_LINE)
        lines = Lines(reader, writer)
        await run_agent(ChatAgent(service), lines, use_unstable_protocol=True)  # pyright: ignore[reportArgumentType]  # what it lacks is answered as an unknown method
    return 0
