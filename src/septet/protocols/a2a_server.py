"""An A2A agent: other agents give tasks to our teams, watch them, answer for their person and get what was made."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from email.utils import formatdate
from importlib.metadata import version as installed_version
from types import CoroutineType
from typing import ParamSpec, TypeVar

import anyio
import msgspec
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes import (
    DefaultServerCallContextBuilder,
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    StringList,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from anyio.abc import TaskGroup
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as ProtobufMessage
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage

from septet.chat.names import CHAT_NAME
from septet.common.hosts import is_loopback
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.errors import BadUsage, SeptetError, as_septet_error, innermost
from septet.ports import ChatHead
from septet.protocols.a2a_push import PushConfigs, checked_address
from septet.protocols.a2a_tasks import (
    INTERRUPTED,
    TERMINAL,
    TaskBuilder,
    TaskId,
    Update,
    build,
    parse_task_id,
    task_count,
)
from septet.protocols.conversation import Message as Words
from septet.protocols.conversation import take_message
from septet.protocols.http import A2A_PATH as PATH
from septet.protocols.http import CARD_PATH, MAX_BODY_BYTES, a2a_error, json_response, push_file
from septet.ways.table import TEAMS
from septet.wiring.chat_runner import ChatService, team_for_person

P = ParamSpec("P")
T = TypeVar("T")
PROTOCOL_VERSION = "1.0"
PAGE_SIZE = 50
MAX_RECENT = 256
"""How many messages are remembered, so that one that is sent again is not taken twice."""
STARTED = formatdate(usegmt=True)
"""The card is the same as long as the server runs."""
TEXT_TYPES = ("text/plain", "text/markdown", "application/json")
SKILLS = {
    "iterate": "Plan, write code, run and test it in a sandbox, and review it until checks prove that it works.",
    "pair": "Program in a pair: one writes, one reviews, checks decide.",
    "plan": "Agree on a plan with checks, and build nothing.",
    "assistant": "Answer a question, with programs run in a sandbox where that shows something.",
    "autocoder": "Change a project step by step until its tests pass.",
}
"""What the built-in teams do; a person's own teams are in the extended card only."""


def operation(
    handle: "Callable[P, CoroutineType[object, object, T]]",
) -> "Callable[P, CoroutineType[object, object, T]]":
    """Checks that a request is whole. What a client did wrong is an error of the protocol, and so is what a person
    must fix.
    """

    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            for given in args:
                if isinstance(given, ProtobufMessage):
                    validate_proto_required_fields(given)
            return await handle(*args, **kwargs)
        except Exception as error:
            raise as_a2a_error(error) from error

    return call


def as_a2a_error(error: BaseException) -> A2AError:
    found = innermost(error)
    if isinstance(found, A2AError):
        return found
    if not isinstance(found, SeptetError):
        logging.getLogger("septet").exception("a request could not be answered", exc_info=error)
    known = as_septet_error(found)
    return InvalidParamsError(str(known)) if isinstance(known, BadUsage) else InternalError(str(known))


def message_words(message: Message) -> str:
    """The words of a message. Raises an error of the protocol for pictures, sounds and files."""
    texts: list[str] = []
    for part in message.parts:
        kind = part.media_type.partition(";")[0].strip().lower()
        if kind and kind not in TEXT_TYPES:
            raise ContentTypeNotSupportedError(f"'{kind[:80]}' is not taken: send text or JSON")
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                texts.append(msgspec.json.encode(MessageToDict(part.data)).decode())
            case _:
                raise ContentTypeNotSupportedError("files and links are not taken: send text or JSON")
    words = "\n".join(texts).strip()
    if not words:
        raise InvalidParamsError("the message is empty")
    return words


class ChatTasks(RequestHandler):
    """The operations of A2A on the chats of a session. Nothing but push configurations is kept beside the log."""

    def __init__(self, service: ChatService, tasks: TaskGroup, pushes: PushConfigs) -> None:
        self.service = service
        self.session = service.session
        self.pushes = pushes
        self._tasks = tasks
        self._recent: dict[bytes, TaskId] = {}
        self._taking = anyio.Lock()

    @operation
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        validate_history_length(params)
        builder = await self._builder(params.id, context)
        return apply_history_length(await self.task(builder), params)

    @operation
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """The newest task of each chat, the last changed first."""
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        heads = [head for head in await self.session.store.chats() if is_wanted(params, head)]
        if params.status:
            heads = [head for head in heads if await self._state(head.chat) == params.status]
        heads = sorted(heads, key=list_key, reverse=True)
        size = params.page_size or PAGE_SIZE
        after = parse_page_token(params.page_token)
        rest = [head for head in heads if after is None or list_key(head) < after]
        listed = [await self._listed(head, params, context) for head in rest[:size]]
        last = rest[size - 1] if len(rest) > size else None
        return ListTasksResponse(
            tasks=listed,
            next_page_token=f"{last.changed!r} {last.chat}" if last else "",
            page_size=size,
            total_size=len(heads),
        )

    @operation
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        builder = await self._builder(params.id, context)
        if builder.status().state in TERMINAL:
            raise TaskNotCancelableError(f"the task {params.id} is over")
        await self.service.stop(builder.state)
        return await self.task(await self._builder(params.id, context))

    @operation
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        validate_history_length(params.configuration)
        identity = await self._take(params, context)
        if not params.configuration.return_immediately:
            async with aclosing(
                self._until_interrupted(await self._builder(str(identity), context))
            ) as updates:
                async for _ in updates:
                    pass
        task = await self.task(await self._builder(str(identity), context))
        return apply_history_length(task, params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Task | Update]:
        """The task as it stands, then what happens until it is over or waits for the client."""
        builder = await self._take_for_stream(params, context)
        yield apply_history_length(await self.task(builder), params.configuration)
        async with aclosing(self._until_interrupted(builder)) as updates:
            async for update in updates:
                yield update

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Task | Update]:
        """The task as it stands, then what happens until it is over, whoever answers; a paused one goes on."""
        builder = await self._watchable(params, context)
        yield await self.task(builder)
        self._go_on(builder)
        async with aclosing(self._watch(builder)) as updates:
            async for update in updates:
                yield update

    @operation
    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        builder = await self._builder(params.task_id, context)
        return await self._push(params, builder, context)

    @operation
    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        await self._builder(params.task_id, context)
        found = self.pushes.of(params.task_id).get(params.id)
        if found is None:
            raise TaskNotFoundError(f"the task has no push configuration '{params.id[:80]}'")
        return found

    @operation
    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        await self._builder(params.task_id, context)
        return ListTaskPushNotificationConfigsResponse(configs=self.pushes.of(params.task_id).values())

    @operation
    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        await self._builder(params.task_id, context)
        self.pushes.remove(params.task_id, params.id)

    @operation
    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """The card with the person's own teams, for those who have the token."""
        return agent_card(base_of(context), list(self.session.teams))

    async def resume(self) -> None:
        """Go on with tasks whose clients wait for a notification, after a restart of the server; forget the others."""
        for name in self.pushes.tasks():
            try:
                builder = await self._builder(name, None)
            except TaskNotFoundError:
                self.pushes.forget(name)
                continue
            if builder.status().state in TERMINAL:
                self.pushes.forget(name)
            else:
                self._go_on(builder)
                self._tasks.start_soon(self._notify, builder)

    async def task(self, builder: TaskBuilder) -> Task:
        return await builder.task()

    async def _builder(self, task: str, context: ServerCallContext | None) -> TaskBuilder:
        """The task as it stands now. Raises TaskNotFoundError."""
        identity = parse_task_id(task)
        log = await self._log(identity.chat) if identity else []
        if identity is None or identity.number > task_count(log):
            raise TaskNotFoundError(f"there is no task '{task[:80]}'")
        return await build(identity, log, self.session.blobs, base_of(context))

    async def _log(self, chat: str) -> list[Recorded]:
        return await self.session.log(chat) if CHAT_NAME.fullmatch(chat) else []

    async def _newest(self, chat: str) -> TaskId:
        return TaskId(chat=chat, number=task_count(await self._log(chat)))

    async def _state(self, chat: str) -> TaskState:
        return (await self._builder(str(await self._newest(chat)), None)).status().state

    async def _listed(self, head: ChatHead, params: ListTasksRequest, context: ServerCallContext) -> Task:
        task = await self.task(await self._builder(str(await self._newest(head.chat)), context))
        if not params.include_artifacts:
            task.ClearField("artifacts")
        return apply_history_length(task, params)

    async def _take(self, params: SendMessageRequest, context: ServerCallContext) -> TaskId:
        """Store what the client says, and let the team work on, whether the client stays or not."""
        identity = await self._say_once(params.message)
        builder = await self._builder(str(identity), context)
        if params.configuration.HasField("task_push_notification_config"):
            config = params.configuration.task_push_notification_config
            config.task_id = str(identity)
            await self._push(config, builder, context)
        self._go_on(builder)
        return identity

    @operation
    async def _take_for_stream(self, params: SendMessageRequest, context: ServerCallContext) -> TaskBuilder:
        validate_history_length(params.configuration)
        return await self._builder(str(await self._take(params, context)), context)

    async def _say_once(self, message: Message) -> TaskId:
        """The task of a message. A client that lost the response may send a message to a task again; without a task the
        same words begin another, as the compatibility kit wants.
        """
        if not message.task_id:
            return await self._say(message)
        key = message.SerializeToString(deterministic=True)
        async with self._taking:
            if key not in self._recent:
                self._recent[key] = await self._say(message)
            while len(self._recent) > MAX_RECENT:
                self._recent.pop(next(iter(self._recent)))
            return self._recent[key]

    async def _say(self, message: Message) -> TaskId:
        words = message_words(message)
        if message.task_id:
            return await self._answer(message, words)
        chat = message.context_id
        if await self._log(chat):
            await take_message(self.service, Words(text=words, chat=chat, seen=seen_by(message)))
            return await self._newest(chat)
        return TaskId(chat=await self._start(message, words), number=1)

    async def _answer(self, message: Message, words: str) -> TaskId:
        builder = await self._builder(message.task_id, None)
        identity = builder.identity
        if message.context_id and message.context_id != identity.chat:
            raise InvalidParamsError(f"the task {identity} is in the context '{identity.chat}'")
        if builder.status().state in TERMINAL:
            raise UnsupportedOperationError(
                f"the task {identity} is over: leave the task out and name the context to begin another"
            )
        await take_message(self.service, Words(text=words, chat=identity.chat, seen=seen_by(message)))
        return identity

    async def _start(self, message: Message, words: str) -> str:
        chat = message.context_id
        if chat and not CHAT_NAME.fullmatch(chat):
            raise InvalidParamsError("a context has up to 63 of a-z, 0-9, '.', '_' and '-': or leave it out")
        wanted = MessageToDict(message.metadata)
        name = str(wanted.get("team", ""))
        if name and name not in self.session.teams:
            raise InvalidParamsError(f"there is no team '{name[:80]}': the extended card lists them")
        team = await self.service.team(name)
        state = await self.service.start(words, team_for_person(team, wanted.get("yes") is True), name=chat)
        return state.chat

    def _go_on(self, builder: TaskBuilder) -> None:
        if builder.status().state == TaskState.TASK_STATE_WORKING or builder.state.halted is not None:
            self._tasks.start_soon(self._conduct, builder.state)

    async def _conduct(self, state: State) -> None:
        """Follow the chat, so that it goes on when the client leaves; its errors are in the log."""
        with suppress(Exception):
            async with self.service.follow(state) as items:
                async for _ in items:
                    pass

    @operation
    async def _watchable(self, params: SubscribeToTaskRequest, context: ServerCallContext) -> TaskBuilder:
        builder = await self._builder(params.id, context)
        if builder.status().state in TERMINAL:
            raise UnsupportedOperationError(f"the task {builder.identity} is over: get it")
        return builder

    async def _watch(self, builder: TaskBuilder) -> AsyncGenerator[Update]:
        """What happens in the task from now on, until it is over."""
        if builder.status().state in TERMINAL:
            return
        async for recorded in self.session.store.watch(builder.identity.chat, builder.state.seq):
            async for update in builder.updates(recorded):
                yield update
            if builder.status().state in TERMINAL:
                return

    async def _until_interrupted(self, builder: TaskBuilder) -> AsyncGenerator[Update]:
        """The same, until the team asks or an error stops it, too. Whoever reads it no more leaves the team at work."""
        if builder.status().state in (*TERMINAL, *INTERRUPTED):
            return
        async with aclosing(self._watch(builder)) as updates:
            async for update in updates:
                yield update
                if builder.status().state in INTERRUPTED:
                    return

    async def _push(
        self, config: TaskPushNotificationConfig, builder: TaskBuilder, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        await checked_address(config.url, is_local(context))
        is_first = not self.pushes.of(str(builder.identity))
        kept = self.pushes.put(config, is_local(context))
        if is_first and builder.status().state not in TERMINAL:
            self._tasks.start_soon(self._notify, builder)
        return kept

    async def _notify(self, builder: TaskBuilder) -> None:
        """Tell what happens in the task to every address that wants it, until it is over."""
        with suppress(SeptetError):
            async with aclosing(self._watch(builder)) as updates:
                async for update in updates:
                    await self.pushes.send(str(builder.identity), update)


def list_key(head: ChatHead) -> tuple[float, str]:
    return (head.changed, head.chat)


def parse_page_token(token: str) -> tuple[float, str] | None:
    """Where the page before ended."""
    if not token:
        return None
    changed, _, chat = token.partition(" ")
    try:
        return (float(changed), chat)
    except ValueError as error:
        raise InvalidParamsError("the page token is not one of ours") from error


def is_wanted(params: ListTasksRequest, head: ChatHead) -> bool:
    is_new = not params.HasField("status_timestamp_after") or (
        head.changed >= params.status_timestamp_after.ToNanoseconds() / 1e9
    )
    return is_new and params.context_id in ("", head.chat)


def seen_by(message: Message) -> int | None:
    """How much of the chat the client has seen, if it says so: an answer counts only for the question that it saw."""
    seen = MessageToDict(message.metadata).get("seen")
    return int(seen) if isinstance(seen, float | int) and 0 <= seen < 1 << 53 else None


def base_of(context: ServerCallContext | None) -> str:
    """The address by which the client reaches this server."""
    return str(context.state.get("base", "")) if context else ""


def is_local(context: ServerCallContext) -> bool:
    return bool(context.state.get("local"))


def agent_card(base: str, teams: list[str]) -> AgentCard:
    """The card: what the agent does, where, and that it wants the token of the server."""
    interfaces = [
        AgentInterface(url=f"{base}{PATH}", protocol_binding=binding, protocol_version=PROTOCOL_VERSION)
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    bearer = HTTPAuthSecurityScheme(scheme="bearer", description="the token of septet web --token-file")
    return AgentCard(
        name="Septet",
        description="A team of agents that plans with you, writes code, runs and tests it in a sandbox and reviews it "
        "until checks prove that it works.",
        version=installed_version("septet"),
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        security_schemes={"token": SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=TEXT_TYPES,
        default_output_modes=(*TEXT_TYPES, "application/octet-stream"),
        skills=[skill(team) for team in teams],
    )


def skill(team: str) -> AgentSkill:
    text = SKILLS.get(team, f"The team '{team}'")
    return AgentSkill(
        id=team,
        name=team,
        description=f'{text} Chosen by the message\'s metadata: {{"team": "{team}"}}.',
        tags=["code", "team"],
        examples=["a command that counts words, with tests"],
    )


class Caller(DefaultServerCallContextBuilder):
    """Notes by which address the client reaches us, and whether it is on this machine."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.state["base"] = base_url(request)
        context.state["local"] = request.client is not None and is_loopback(request.client.host)
        return context


def base_url(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


async def serve_card(request: Request) -> Response:
    """The public card names the built-in teams only."""
    card = agent_card(base_url(request), [team for team in TEAMS if team in SKILLS])
    (route,) = create_agent_card_routes(card, card_url=CARD_PATH, cache_control="private, max-age=300")
    response: Response = await route.endpoint(request)
    response.headers["last-modified"] = STARTED
    return response


@asynccontextmanager
async def open_a2a_endpoint(
    service: ChatService, operations: type[ChatTasks] = ChatTasks
) -> AsyncGenerator[ASGIApp]:
    """The endpoint for both bindings. Whoever serves it lets in only whom it knows."""
    silence_package()
    async with anyio.create_task_group() as tasks:
        handler = operations(service, tasks, PushConfigs(push_file(service.session.home)))
        await handler.resume()
        yield a2a_application(handler)
        tasks.cancel_scope.cancel()


def a2a_application(handler: RequestHandler) -> ASGIApp:
    routes = [
        Route(CARD_PATH, serve_card),
        *(route for path in (PATH, f"{PATH}/") for route in create_jsonrpc_routes(handler, path, Caller())),
        *create_rest_routes(handler, Caller(), path_prefix=PATH),
    ]
    return WholeBody(Starlette(routes=routes, exception_handlers={404: refuse, 405: refuse}))


async def refuse(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    text = f"there is no {request.method} {request.url.path[:80]}"
    return json_response(a2a_error(request.url.path, status, text), status)


class WholeBody:
    """Reads a body up to a limit and sees that it is JSON, before the package does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        while scope["method"] == "POST":
            message = await receive()
            body += message.get("body", b"")
            if (
                message["type"] == "http.disconnect"
                or not message.get("more_body")
                or len(body) > MAX_BODY_BYTES
            ):
                break
        wrong = wrong_body(scope, bytes(body))
        if wrong is not None:
            await wrong(scope, receive, send)
            return
        read = False

        async def replay() -> AsgiMessage:
            nonlocal read
            if read or scope["method"] != "POST":
                return await receive()
            read = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, replay, with_json_type(send))


def with_json_type(send: Send) -> Send:
    """The package answers with a media type of A2A's own; section 11.1 of the specification wants plain JSON."""

    async def send_plain(message: AsgiMessage) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("application/a2a+json"):
                headers["content-type"] = "application/json"
        await send(message)

    return send_plain


JSON_TYPES = ("application/json", "application/a2a+json")


def wrong_body(scope: Scope, body: bytes) -> Response | None:
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
    if body and kind not in JSON_TYPES:
        error = ContentTypeNotSupportedError(f"'{kind[:80]}' is not taken: send application/json")
        is_rpc = scope["path"].rstrip("/") == PATH
        return json_response(
            build_error_response(None, error) if is_rpc else build_rest_error_payload(error), 415
        )
    if len(body) > MAX_BODY_BYTES:
        return json_response(
            a2a_error(scope["path"], 413, f"the body is larger than {MAX_BODY_BYTES:,} bytes"), 413
        )
    try:
        if body:
            msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return json_response(a2a_error(scope["path"], 400, f"the body is not JSON ({error})"), 400)
    return None


def silence_package() -> None:
    """The package logs what clients do wrong; they are told, nobody else."""
    logger = logging.getLogger("a2a")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
