"""An MCP server: other programs build, ask, check and deliver with our teams, by stdio or streamable HTTP."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import wraps
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

import msgspec
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.types import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ToolAnnotations,
)
from pydantic import BaseModel, Field
from starlette.types import ASGIApp

from septet.chat.export_file import document
from septet.chat.results import awaited_question, result_of, summary
from septet.chat.results import status as status_text
from septet.chat.versions import version_diff, version_named
from septet.domain.state import State
from septet.errors import BadUsage, SeptetError, innermost
from septet.protocols.conversation import (
    Message,
    Piece,
    Turn,
    TurnText,
    checks_text,
    play_turn,
    question_text,
    take_message,
)
from septet.wiring.chat_runner import ChatService, open_chat_service, team_for_person
from septet.wiring.session import open_session
from septet.wiring.trial import check_newest

P = ParamSpec("P")
T = TypeVar("T")
ELICITS = ClientCapabilities(elicitation=ElicitationCapability())
REQUESTS_IN_RESULTS = "2026-07-28"
"""From this version of the protocol on, a server asks by its result, and the client calls again with the answer."""
ANSWER_KEY = "answer"
MAX_PROGRESS_LENGTH = 200
INSTRUCTIONS = """Septet is a team of agents that plans, writes code, runs and tests it in a sandbox and reviews it
until checks prove that it works. `build` starts a chat; if its result has `awaits`, the person must decide: pass
their words on with `answer`. `diff` shows what would change, `deliver` writes it. Chats are resources under septet://chats."""

Goal = Annotated[str, Field(description="What to build, in plain words.", max_length=100_000)]
Team = Annotated[str, Field(description="A team's name; empty for the default one.", max_length=500)]
Folder = Annotated[
    str,
    Field(
        description="An existing folder to work on, as an absolute path; empty for a new one.",
        max_length=4096,
    ),
]
Chat = Annotated[str, Field(description="The name of a chat, or its beginning.", max_length=200)]
Yes = Annotated[bool, Field(description="Approve plans without asking, and deliver what is proven.")]


class ChatOutcome(BaseModel):
    """How a chat stands. `awaits` is what the team asks; the tool `answer` takes the person's words."""

    chat: str
    status: str
    text: str
    awaits: str = ""
    answer: str = ""
    workspace: str = ""
    proven: list[str] = Field(default_factory=list)
    unproven: list[str] = Field(default_factory=list)


class ChatEntry(BaseModel):
    chat: str
    goal: str
    status: str


class ChatStatus(BaseModel):
    chat: ChatOutcome | None = None
    chats: list[ChatEntry] = Field(default_factory=list[ChatEntry])


class Answer(BaseModel):
    """What a client's form asks for."""

    answer: str = Field(description="Your answer, in your own words.")


def outcome_of(state: State) -> ChatOutcome:
    result = result_of(state)
    return ChatOutcome(
        chat=state.chat,
        status="asks" if awaited_question(state) else result.status,
        text=TurnText(state).closing("the tool `deliver`"),
        awaits=question_text(awaited_question(state)),
        answer=result.answer,
        workspace=state.workspace,
        proven=[f"{line.item} {line.requirement}: {line.evidence}" for line in result.evidence if line.met],
        unproven=[f"{line.item} {line.requirement}" for line in result.evidence if not line.met],
    )


def with_tool_errors(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """What a person must fix is the tool's error, in one line."""

    @wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except Exception as error:
            if isinstance(innermost(error), SeptetError):
                raise ToolError(str(innermost(error))) from error
            raise

    return call


def with_resource_errors(read: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    @wraps(read)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await read(*args, **kwargs)
        except BadUsage as error:
            raise ResourceNotFoundError(str(error)) from error
        except SeptetError as error:
            raise ResourceError(str(error)) from error

    return call


class ChatTools:
    """The tools. `local` means that the client runs on this machine with the person's rights, and may name folders."""

    def __init__(self, service: ChatService, local: bool) -> None:
        self.service = service
        self.session = service.session
        self.local = local

    @with_tool_errors
    async def build(
        self, goal: Goal, ctx: Context, team: Team = "", folder: Folder = "", yes: Yes = False
    ) -> ChatOutcome | InputRequiredResult:
        """Plan with the person, write code, run and test it in a sandbox and review it, until checks prove it.

        Takes minutes; progress tells each step. What it changes in a folder stays apart until `deliver`.
        """
        return await self._start(ctx, goal, team, folder, yes)

    @with_tool_errors
    async def plan(self, goal: Goal, ctx: Context, folder: Folder = "") -> ChatOutcome | InputRequiredResult:
        """Agree with the person on a plan with checks, and build nothing."""
        return await self._start(ctx, goal, "plan", folder, yes=False)

    @with_tool_errors
    async def ask_code(
        self, question: Goal, ctx: Context, folder: Folder = ""
    ) -> ChatOutcome | InputRequiredResult:
        """Ask an assistant that can read the folder and run programs in a sandbox. The folder stays as it is."""
        return await self._start(ctx, question, "assistant", folder, yes=False)

    @with_tool_errors
    async def answer(
        self, chat: Chat, text: Annotated[str, Field(max_length=100_000)], ctx: Context
    ) -> ChatOutcome | InputRequiredResult:
        """Pass on the person's words: the answer to what a chat awaits, else an instruction; the team continues."""
        name = await self.session.find(chat)
        if ctx.request_state:
            return await self._go_on(ctx)
        return await self._drive(ctx, await take_message(self.service, Message(text=text, chat=name)))

    @with_tool_errors
    async def status(self, chat: Chat = "") -> ChatStatus:
        """How a chat stands; without a name, all chats, the newest first."""
        return ChatStatus(chat=await self._outcome(chat)) if chat else ChatStatus(chats=await self.entries())

    @with_tool_errors
    async def run_checks(self, chat: Chat, ctx: Context) -> ChatOutcome:
        """Run the checks of a chat's plan on its newest version again, in a copy; nothing is stored."""
        await ctx.report_progress(0, message="the checks run")
        checked = await check_newest(self.session, await self.session.find(chat))
        outcome = outcome_of(checked)
        status = "not met" if outcome.unproven else "met"
        return outcome.model_copy(update={"status": status, "text": checks_text(checked)})

    @with_tool_errors
    async def diff(
        self,
        chat: Chat,
        old: Annotated[str, Field(description="A version, v1; empty: the folder.", max_length=40)] = "",
        new: Annotated[str, Field(description="A version; empty: the newest.", max_length=40)] = "",
    ) -> str:
        """What a chat changes in its folder, or between two versions, as a unified diff."""
        state = await self.session.state(await self.session.find(chat))
        newest = version_named(state, new or str(len(state.work.versions)))
        if state.base is not None and not old and not new:
            return await (await self.session.delivery(state)).diff()
        before = version_named(state, old or str(max(1, newest.number - 1)))
        return await version_diff(before, newest, self.session.blobs)

    @with_tool_errors
    async def deliver(
        self,
        chat: Chat,
        files: Annotated[
            list[str] | None, Field(description="Only these; empty: all.", max_length=10_000)
        ] = None,
    ) -> ChatOutcome:
        """Write what a chat has made into its folder. `septet undo` takes it back. Ask the person first."""
        name = await self.session.find(chat)
        await self.session.deliver(name, files or None)
        return await self._outcome(name)

    async def entries(self) -> list[ChatEntry]:
        heads = await self.session.store.chats()
        states = [await self.session.state(head.chat) for head in heads]
        return [
            ChatEntry(chat=one.chat, goal=" ".join(one.goal.split())[:200], status=status_text(one))
            for one in states
        ]

    async def _outcome(self, chat: str) -> ChatOutcome:
        return outcome_of(await self.session.state(await self.session.find(chat)))

    async def _start(
        self, ctx: Context, goal: str, team: str, folder: str, yes: bool
    ) -> ChatOutcome | InputRequiredResult:
        if ctx.request_state:
            return await self._go_on(ctx)
        spec = team_for_person(await self.service.team(team), yes)
        state = await self.service.start(goal, spec, self._folder(folder))
        return await self._drive(ctx, Turn(start=state))

    def _folder(self, folder: str) -> Path | None:
        if not folder:
            return None
        if not self.local:
            raise BadUsage("a folder can be named only by stdio", "leave it out, or use septet mcp serve")
        path = Path(folder)
        if not path.is_absolute() or not path.is_dir():
            raise BadUsage(f"'{folder[:200]}' is no folder", "name one by its absolute path")
        return path

    async def _go_on(self, ctx: Context) -> ChatOutcome | InputRequiredResult:
        """The client calls again, with what the person has answered."""
        chat, _, seen = (ctx.request_state or "").rpartition(" ")
        response = (ctx.input_responses or {}).get(ANSWER_KEY)
        content = (
            response.content or {}
            if isinstance(response, ElicitResult) and response.action == "accept"
            else {}
        )
        text = str(content.get("answer", ""))
        if not text.strip():
            return await self._outcome(chat)
        return await self._drive(
            ctx, await take_message(self.service, Message(text=text, chat=chat, seen=int(seen)))
        )

    async def _drive(self, ctx: Context, turn: Turn) -> ChatOutcome | InputRequiredResult:
        """Let the team work; what it asks is asked of the person by the client, as far as the client can."""
        while True:
            end = await self._play(ctx, turn)
            asked = question_text(awaited_question(end))
            if not asked or not ctx.session.check_client_capability(ELICITS):
                return outcome_of(end)
            if (ctx.protocol_version or "") >= REQUESTS_IN_RESULTS:
                return input_required(asked, end)
            given = await ctx.elicit(asked, Answer)
            if given.action != "accept" or not given.data.answer.strip():
                return outcome_of(end)
            turn = await take_message(
                self.service, Message(text=given.data.answer, chat=end.chat, seen=end.seq)
            )

    async def _play(self, ctx: Context, turn: Turn) -> State:
        steps = 0

        async def emit(piece: Piece) -> None:
            nonlocal steps
            if piece.text:
                steps += 1
                line = piece.text.strip().partition("\n")[0].replace("**", "")
                await ctx.report_progress(steps, message=line[:MAX_PROGRESS_LENGTH])

        return await play_turn(self.service, turn, emit)


def input_required(asked: str, end: State) -> InputRequiredResult:
    form = ElicitRequestFormParams(message=asked, requested_schema=Answer.model_json_schema())
    return InputRequiredResult(
        input_requests={ANSWER_KEY: ElicitRequest(params=form)}, request_state=f"{end.chat} {end.seq}"
    )


class ChatResources:
    """Chats, reports, versions and artefacts, read by address."""

    def __init__(self, tools: ChatTools) -> None:
        self.tools = tools
        self.session = tools.session

    async def chats(self) -> str:
        return msgspec.json.encode([one.model_dump() for one in await self.tools.entries()]).decode()

    @with_resource_errors
    async def chat(self, chat: str) -> str:
        return msgspec.json.encode(result_of(await self._state(chat))).decode()

    @with_resource_errors
    async def report(self, chat: str) -> str:
        return summary(await self._state(chat))

    @with_resource_errors
    async def transcript(self, chat: str) -> str:
        state = await self._state(chat)
        content = await document(await self.session.log(state.chat), "md", self.session.blobs)
        return content.decode()

    @with_resource_errors
    async def version(self, chat: str, version: str) -> str:
        found = version_named(await self._state(chat), version)
        return msgspec.json.encode([{"path": file.path, "size": file.size} for file in found.files]).decode()

    @with_resource_errors
    async def version_file(self, chat: str, version: str, path: str) -> str | bytes:
        found = version_named(await self._state(chat), version)
        return await self._content({file.path: file.sha256 for file in found.files}.get(path, ""), path)

    @with_resource_errors
    async def artefact(self, chat: str, path: str) -> str | bytes:
        return await self._content((await self._state(chat)).work.artefacts.get(path, ""), path)

    async def _state(self, chat: str) -> State:
        return await self.session.state(await self.session.find(chat, whole=True))

    async def _content(self, address: str, path: str) -> str | bytes:
        if not address:
            raise BadUsage(f"there is no file '{path[:200]}'")
        content = await self.session.blobs.get(address)
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content


def prompt_to_build(goal: str) -> str:
    """Build something with the team, and let me decide what is mine to decide."""
    return (
        f"Use septet's `build` with this goal: {goal}\nShow me every plan, question and review that it awaits, and "
        "pass my words on with `answer`. At the end show the evidence, and `diff` before you `deliver`."
    )


def prompt_to_check(chat: str) -> str:
    """Check what a chat has made."""
    return (
        f"Run septet's `run_checks` on the chat {chat}, read septet://chats/{chat}/report and `diff`, and tell me what "
        "is proven, what is only claimed, and what you would look at yourself."
    )


READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WORKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


@contextmanager
def unchanged_logging() -> Generator[None]:
    """The package sets up the root logger, and logs the errors of clients; they are told to the clients only."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logger = logging.getLogger("mcp")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())


def mcp_server(service: ChatService, local: bool) -> MCPServer:
    with unchanged_logging():
        server: MCPServer = MCPServer(
            "septet", instructions=INSTRUCTIONS, version=installed_version("septet")
        )
    tools = ChatTools(service, local)
    for work in (tools.build, tools.plan, tools.ask_code, tools.answer):
        server.add_tool(work, annotations=WORKS)
    for read in (tools.status, tools.run_checks, tools.diff):
        server.add_tool(read, annotations=READS)
    server.add_tool(tools.deliver, annotations=WRITES)
    add_resources(server, ChatResources(tools))
    server.prompt("build")(prompt_to_build)
    server.prompt("check")(prompt_to_check)
    return server


def add_resources(server: MCPServer, resources: ChatResources) -> None:
    chat = "septet://chats/{chat}"
    listed: list[tuple[str, Callable[..., Awaitable[str | bytes]], str, str]] = [
        ("septet://chats", resources.chats, "application/json", "All chats"),
        (chat, resources.chat, "application/json", "How a chat stands, with evidence and cost"),
        (f"{chat}/report", resources.report, "text/plain", "A chat on one screen"),
        (f"{chat}/transcript", resources.transcript, "text/markdown", "Everything that was said and done"),
        (f"{chat}/versions/{{version}}", resources.version, "application/json", "The files of a version"),
        (
            f"{chat}/versions/{{version}}/{{+path}}",
            resources.version_file,
            "text/plain",
            "A file of a version",
        ),
        (
            f"{chat}/artefacts/{{+path}}",
            resources.artefact,
            "application/octet-stream",
            "What a run has made",
        ),
    ]
    for uri, read, kind, description in listed:
        server.resource(uri, mime_type=kind, description=description)(read)


async def serve_stdio(model: str) -> int:
    """Serve the client at the other end of our standard input and output until it closes them."""
    async with open_session() as session, open_chat_service(session, model) as service:
        await mcp_server(service, local=True).run_stdio_async()
    return 0


@asynccontextmanager
async def open_http_endpoint(
    service: ChatService, build: Callable[[ChatService, bool], MCPServer] = mcp_server
) -> AsyncGenerator[ASGIApp]:
    """The endpoint of streamable HTTP. Whoever serves it lets in only whom it knows."""
    server = build(service, False)
    server.streamable_http_app()
    manager: StreamableHTTPSessionManager = server.session_manager
    async with manager.run():
        yield StreamableHTTPASGIApp(manager)
