"""The OpenAI endpoint: each team is a model, a chat is a conversation with it, by chat completions and responses."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from time import time
from typing import Annotated, Protocol

import anyio
import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from septet.chat.results import awaited_question
from septet.common.values import Value
from septet.domain.events import Recorded
from septet.domain.messages import Usage
from septet.domain.reduce import fold
from septet.domain.state import State
from septet.errors import BadUsage, SeptetError, as_septet_error, innermost
from septet.protocols.conversation import (
    Message,
    Piece,
    Position,
    Turn,
    play_turn,
    position_in,
    take_message,
    turn_end,
    turn_text,
    usage_between,
)
from septet.protocols.http import NotFound, decode_body, json_response, status_of
from septet.wiring.chat_runner import ChatService, team_for_person

CHAT_HEADER = "x-septet-chat"
RETRY_HEADER = "x-stainless-retry-count"
MAX_RECENT = 256
"""How many first messages are remembered, so that a client that repeats one gets the same chat."""

Text = Annotated[str, Meta(max_length=500_000)]


class ContentPart(Value):
    type: str = "text"
    text: Text = ""
    refusal: Text = ""


class ClientMessage(Value):
    """A message of either API; items of responses that are none (calls, reasoning) have no role."""

    role: str = ""
    content: Text | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if part.type not in ("text", "input_text", "output_text", "refusal"):
                raise BadUsage(f"a part of the type '{part.type[:40]}' cannot be used", "send text")
        return "\n".join(part.text or part.refusal for part in self.content)


class StreamOptions(Value):
    include_usage: bool | None = None


class CompletionRequest(Value):
    """`POST /v1/chat/completions`; what else a client sets (temperature …) is for each team's models to say."""

    model: Annotated[str, Meta(max_length=500)]
    messages: Annotated[list[ClientMessage], Meta(min_length=1, max_length=10_000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    metadata: Mapping[str, str] | None = None


class ConversationId(Value):
    id: str


class ResponseRequest(Value):
    """`POST /v1/responses`."""

    model: Annotated[str, Meta(max_length=500)]
    input: Text | list[ClientMessage]
    instructions: Text | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationId | None = None
    stream: bool | None = None
    background: bool | None = None
    metadata: Mapping[str, str] | None = None


COMPLETION_DECODER = msgspec.json.Decoder(CompletionRequest)
RESPONSE_DECODER = msgspec.json.Decoder(ResponseRequest)


class Said(Value):
    """A request of either API, as what is said to whom."""

    team: str
    messages: tuple[ClientMessage, ...]
    instructions: str = ""
    position: Position | None = None
    chat: str = ""
    """A chat that the client names itself."""
    again: bool = False

    @property
    def last(self) -> str:
        """The newest words of the user. Raises BadUsage if there are none."""
        text = next((one.text for one in reversed(self.messages) if one.role == "user"), "")
        if not text.strip():
            raise BadUsage("there is no message of the user", "send one with some text")
        return text

    @property
    def goal(self) -> str:
        """The newest words, with what was said before them in a conversation that no chat of ours began."""
        last = self.last
        spoken = [one for one in self.messages if one.text.strip()]
        earlier = spoken[: max(at for at, one in enumerate(spoken) if one.role == "user")]
        context = [
            *([f"instructions: {self.instructions}"] if self.instructions else []),
            *(
                f"{'instructions' if one.role in ('system', 'developer') else one.role}: {one.text}"
                for one in earlier
            ),
        ]
        said = "\n".join(context)
        return f"{last}\n\nSaid before, in the conversation:\n{said}" if context else last


def position_in_messages(messages: tuple[ClientMessage, ...]) -> Position | None:
    """Where the conversation stands: in the newest message of the assistant that names a chat."""
    texts = (one.text for one in reversed(messages) if one.role == "assistant")
    return next((found for text in texts if (found := position_in(text)) is not None), None)


class Wire(Protocol):
    """How a turn is told to a client: by chat completions, or by responses."""

    def opening(self) -> list[bytes]: ...
    def piece(self, piece: Piece) -> list[bytes]: ...
    def ending(self, end: State) -> list[bytes]: ...
    def failure(self, error: SeptetError) -> list[bytes]: ...
    def whole(self, end: State) -> object: ...


def server_event(content: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + msgspec.json.encode(content) + b"\n\n"


KEEP_ALIVE = b": at work\n\n"


class CompletionWire:
    def __init__(self, team: str, start: State, include_usage: bool) -> None:
        self.head = {"id": f"chatcmpl-{start.chat}.{start.seq}", "created": int(time()), "model": team}
        self.start = start
        self.include_usage = include_usage
        self.text: list[str] = []

    def opening(self) -> list[bytes]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def piece(self, piece: Piece) -> list[bytes]:
        self.text.append(piece.text)
        if piece.live:
            return [self._chunk({"reasoning_content": piece.live})]
        return [self._chunk({"content": piece.text})] if piece.text else [KEEP_ALIVE]

    def ending(self, end: State) -> list[bytes]:
        last: dict[str, object] = {
            "object": "chat.completion.chunk",
            "choices": (),
            "usage": self._usage(end),
        }
        usage = [server_event({**self.head, **last})] if self.include_usage else []
        return [self._chunk({}, "stop"), *usage, b"data: [DONE]\n\n"]

    def failure(self, error: SeptetError) -> list[bytes]:
        return [server_event(error_content(error))]

    def whole(self, end: State) -> object:
        message = {"role": "assistant", "content": "".join(self.text), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": self._usage(end)}

    def _chunk(self, delta: object, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self.include_usage else {}
        return server_event({**self.head, "object": "chat.completion.chunk", "choices": [choice], **usage})

    def _usage(self, end: State) -> object:
        used = usage_between(self.start, end)
        return {
            "prompt_tokens": used.prompt,
            "completion_tokens": used.completion,
            "total_tokens": used.prompt + used.completion,
            "prompt_tokens_details": {"cached_tokens": used.cached},
        }


class ResponseWire:
    def __init__(self, team: str, start: State, request: ResponseRequest | None = None) -> None:
        self.id = response_id(start)
        self.created = int(time())
        self.team = team
        self.start = start
        self.request = request
        self.text: list[str] = []
        self._number = -1

    def opening(self) -> list[bytes]:
        begun = self.content("in_progress", None)
        return [
            self._event("response.created", response=begun),
            self._event("response.in_progress", response=begun),
            self._event("response.output_item.added", item=self._item("in_progress"), output_index=0),
            self._event("response.content_part.added", part=text_part(""), **self._place()),
        ]

    def piece(self, piece: Piece) -> list[bytes]:
        self.text.append(piece.text)
        if not piece.text:
            return [KEEP_ALIVE]
        return [self._event("response.output_text.delta", delta=piece.text, logprobs=[], **self._place())]

    def ending(self, end: State) -> list[bytes]:
        text = "".join(self.text)
        return [
            self._event("response.output_text.done", text=text, logprobs=[], **self._place()),
            self._event("response.content_part.done", part=text_part(text), **self._place()),
            self._event("response.output_item.done", item=self._item("completed"), output_index=0),
            self._event("response.completed", response=self.whole(end)),
        ]

    def failure(self, error: SeptetError) -> list[bytes]:
        failed = {**self.content("failed", None), "error": {"code": "server_error", "message": str(error)}}
        return [self._event("response.failed", response=failed)]

    def whole(self, end: State) -> object:
        return self.content("completed", usage_between(self.start, end))

    def content(self, status: str, used: Usage | None) -> dict[str, object]:
        request = self.request
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.team,
            "output": [self._item(status)] if status == "completed" else [],
            "error": None,
            "incomplete_details": None,
            "instructions": request.instructions if request else None,
            "metadata": dict(request.metadata or {}) if request else {},
            "previous_response_id": request.previous_response_id if request else None,
            "conversation": {"id": f"conv_{self.start.chat}"},
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "temperature": None,
            "top_p": None,
            "text": {"format": {"type": "text"}},
            "usage": response_usage(used) if used else None,
        }

    def _item(self, status: str) -> object:
        content = [text_part("".join(self.text))] if status == "completed" else []
        return {
            "id": self._place()["item_id"],
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _place(self) -> dict[str, object]:
        return {"item_id": f"msg_{self.start.chat}.{self.start.seq}", "output_index": 0, "content_index": 0}

    def _event(self, kind: str, **content: object) -> bytes:
        self._number += 1
        return server_event({"type": kind, "sequence_number": self._number, **content}, kind)


def text_part(text: str) -> object:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def response_usage(used: Usage) -> object:
    return {
        "input_tokens": used.prompt,
        "input_tokens_details": {"cached_tokens": used.cached, "cache_write_tokens": 0},
        "output_tokens": used.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt + used.completion,
    }


def response_id(start: State) -> str:
    return f"resp_{start.chat}.{start.seq}"


def parse_response_id(text: str) -> Position:
    """The chat and the sequence number at which the response's turn began. Raises NotFound for any other text."""
    chat, _, seq = text.removeprefix("resp_").rpartition(".")
    if not text.startswith("resp_") or not seq.isascii() or not seq.isdigit() or len(seq) > 12:
        raise NotFound(f"there is no response '{text[:80]}'", "use the id of one")
    return Position(chat=chat, seq=int(seq))


KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}


def error_content(error: SeptetError, code: str | None = None) -> object:
    status = status_of(error)
    kind = KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": str(error), "type": kind, "param": None, "code": code}}


def refusal_content(status: int, text: str) -> object:
    """The error of a request that is not let in."""
    kind = KINDS.get(status, "invalid_request_error")
    code = "invalid_api_key" if status == 401 else None
    return {"error": {"message": text, "type": kind, "param": None, "code": code}}


class UnknownTeam(NotFound):
    """No team has the name that the client gives as the model's."""


def with_openai_errors(
    endpoint: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Every error in the form that OpenAI's clients read."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            known = as_septet_error(error)
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet").exception("a request could not be answered")
            code = "model_not_found" if isinstance(known, UnknownTeam) else None
            return json_response(error_content(known, code), status_of(known))

    return answer


class TurnStream(Response):
    """Streams a turn as server-sent events. A client that leaves pauses the chat."""

    def __init__(self, service: ChatService, turn: Turn, wire: Wire) -> None:
        super().__init__(media_type="text/event-stream", headers={"cache-control": "no-store"})
        del self.headers["content-length"]
        self._service = service
        self._turn = turn
        self._wire = wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def put(parts: list[bytes], more: bool = True) -> None:
            await send({"type": "http.response.body", "body": b"".join(parts), "more_body": more})

        async def emit(piece: Piece) -> None:
            await put(self._wire.piece(piece))

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await put(self._wire.opening())
        try:
            end = await until_disconnected(receive, lambda: play_turn(self._service, self._turn, emit))
        except Exception as error:
            await put(self._wire.failure(as_septet_error(error)), more=False)
        else:
            await put(self._wire.ending(end) if end else [], more=False)


async def until_disconnected(receive: Receive, work: Callable[[], Awaitable[State]]) -> State | None:
    """The state in which the work ends; None if the client leaves first, which cancels the work."""
    end: State | None = None

    async def wait_for_disconnect() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_disconnect)
        end = await work()
        tasks.cancel_scope.cancel()
    return end


def past_response(log: Sequence[Recorded], began: Position) -> object:
    """The response whose turn began there, from the log."""
    end = turn_end(log, began.seq)
    start, last = (fold(one for one in log if one.seq <= seq) for seq in (began.seq, end))
    wire = ResponseWire(start.team.name, start)
    wire.created = int(next(one.at for one in log if one.seq == began.seq))
    is_over = awaited_question(last) is not None or last.ended is not None
    wire.text = [turn_text(log, began.seq, end)]
    return wire.whole(last) if is_over else wire.content("in_progress", None)


def model_content(team: str) -> object:
    return {"id": team, "object": "model", "created": 0, "owned_by": "septet"}


def is_repeated(request: Request) -> bool:
    """Whether the client sends this request again, as OpenAI's own clients say."""
    return request.headers.get(RETRY_HEADER, "0") not in ("", "0")


async def not_found(request: Request) -> Response:
    raise NotFound(f"there is no {request.method} {request.url.path[:80]} here", "see docs/protocols.md")


class OpenAiApi:
    """The endpoints under /v1."""

    def __init__(self, service: ChatService) -> None:
        self.service = service
        self._recent: dict[str, Position] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/models", with_openai_errors(self.models)),
            Route("/models/{model:path}", with_openai_errors(self.model)),
            Route("/chat/completions", with_openai_errors(self.complete), methods=["POST"]),
            Route("/responses", with_openai_errors(self.respond), methods=["POST"]),
            Route("/responses/{response}", with_openai_errors(self.response)),
            Route(
                "/{rest:path}",
                with_openai_errors(not_found),
                methods=["GET", "POST", "DELETE", "PUT", "PATCH"],
            ),
        ]

    async def models(self, request: Request) -> Response:
        return json_response(
            {"object": "list", "data": [model_content(name) for name in self.service.session.teams]}
        )

    async def model(self, request: Request) -> Response:
        return json_response(model_content(self.checked_team(request.path_params["model"])))

    async def complete(self, request: Request) -> Response:
        asked = await decode_body(request, COMPLETION_DECODER)
        if asked.n not in (None, 1):
            raise BadUsage(f"n is {asked.n}", "a team gives one answer: leave it out")
        said = Said(
            team=self.checked_team(asked.model),
            messages=tuple(asked.messages),
            position=position_in_messages(tuple(asked.messages)),
            chat=request.headers.get(CHAT_HEADER, "") or (asked.metadata or {}).get("chat", ""),
            again=is_repeated(request),
        )
        turn = await self.open_turn(said)
        usage = asked.stream_options is not None and bool(asked.stream_options.include_usage)
        return await self.answer(
            request, turn, CompletionWire(said.team, turn.start, usage), bool(asked.stream)
        )

    async def respond(self, request: Request) -> Response:
        asked = await decode_body(request, RESPONSE_DECODER)
        if asked.background:
            raise BadUsage("background is set", "stream the response, or watch the chat on the page")
        given = (
            asked.input
            if isinstance(asked.input, list)
            else [ClientMessage(role="user", content=asked.input)]
        )
        conversation = (
            asked.conversation.id if isinstance(asked.conversation, ConversationId) else asked.conversation
        )
        said = Said(
            team=self.checked_team(asked.model),
            messages=tuple(given),
            instructions=asked.instructions or "",
            position=await self.position_after(asked.previous_response_id)
            or position_in_messages(tuple(given)),
            chat=request.headers.get(CHAT_HEADER, "") or (conversation or "").removeprefix("conv_"),
            again=is_repeated(request),
        )
        turn = await self.open_turn(said)
        return await self.answer(
            request, turn, ResponseWire(said.team, turn.start, asked), bool(asked.stream)
        )

    async def response(self, request: Request) -> Response:
        """A response once more, from the log."""
        began = parse_response_id(request.path_params["response"])
        log = await self.service.session.log(began.chat)
        if not any(recorded.seq == began.seq for recorded in log):
            raise NotFound(
                f"there is no response '{request.path_params['response'][:80]}'", "use the id of one"
            )
        return json_response(past_response(log, began))

    async def position_after(self, previous: str | None) -> Position | None:
        """What a client has seen that names its previous response: the log up to the end of that turn."""
        if not previous:
            return None
        began = parse_response_id(previous)
        return Position(chat=began.chat, seq=turn_end(await self.service.session.log(began.chat), began.seq))

    def checked_team(self, name: str) -> str:
        if name not in self.service.session.teams:
            raise UnknownTeam(f"there is no team '{name[:80]}'", "GET /v1/models lists them")
        return name

    async def open_turn(self, said: Said) -> Turn:
        """The turn that answers what is said: in the chat that it belongs to, else in a new one."""
        place = said.position
        chat = said.chat or (place.chat if place else "")
        if not chat:
            return Turn(start=await self.start(said))
        seen = place.seq if place and place.chat == chat else None
        message = Message(text=said.last, chat=chat, seen=seen, again=said.again)
        return await take_message(self.service, message)

    async def start(self, said: Said) -> State:
        key = sha256(msgspec.json.encode([said.team, said.goal])).hexdigest()
        if said.again and key in self._recent:
            first = self._recent[key]
            return fold(one for one in await self.service.session.log(first.chat) if one.seq <= first.seq)
        team = team_for_person(await self.service.team(said.team))
        state = await self.service.start(said.goal, team)
        while len(self._recent) >= MAX_RECENT:
            self._recent.pop(next(iter(self._recent)))
        self._recent[key] = Position(chat=state.chat, seq=state.seq)
        return state

    async def answer(self, request: Request, turn: Turn, wire: Wire, stream: bool) -> Response:
        if stream:
            return TurnStream(self.service, turn, wire)

        async def emit(piece: Piece) -> None:
            wire.piece(piece)

        end = await until_disconnected(request.receive, lambda: play_turn(self.service, turn, emit))
        return json_response(wire.whole(end) if end else {})
