"""A mock model server over real sockets: streams, tool calls, schemas, and every fault on demand.

async with serve_mock(in_order(Reply(text="hello")), faults={1: "rate limited"}) as server:
    model = ...  # any client of the OpenAI or Anthropic protocol, pointed at server.url
"""

import socket
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from septet.testing.replies import (
    FEATURES,
    Embed,
    Fault,
    Feature,
    ReceivedRequest,
    Reply,
    Script,
    bag_of_words,
    echo,
)
from septet.testing.responses import (
    Response,
    api_error_response,
    faulty,
    missing_feature,
    plain_response,
    request_form,
    unsupported_response,
)

MAX_HEADER_BYTES = 1 << 16
BATCH_BYTES = 1 << 15


class MockServer:
    """Answers from a script and keeps the POST requests that it received in `seen`."""

    def __init__(
        self,
        script: Script = echo,
        faults: Mapping[int, Fault] | None = None,
        features: frozenset[Feature] = FEATURES,
        key: str = "",
        retry_after: str = "1",
    ) -> None:
        self.seen: list[ReceivedRequest] = []
        self.embed: Embed = bag_of_words
        self.unsupported_message = ""
        """The error message for an unsupported feature, if not the default one."""
        self.refused_parameter = ""
        """A parameter that it rejects."""
        self.refusal = ""
        """The error message for it, if not the default one."""
        self.max_tokens = 0
        """The largest `max_tokens` that it accepts; 0 for any."""
        self.connections = 0
        self.url = ""
        self._script = script
        self._faults: Mapping[int, Fault] = faults or {}
        self._features = features
        self._key = key
        self._retry_after = retry_after

    async def serve(self, stream: SocketStream) -> None:
        """Serve one connection until either side closes it."""
        self.connections += 1
        buffered = BufferedByteReceiveStream(stream)
        try:
            async with stream:
                while (request := await self._read(buffered)) is not None:
                    response = self._respond(request)
                    await anyio.sleep(response.delay)
                    if not await send_response(stream, response):
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            return

    async def _read(self, stream: BufferedByteReceiveStream) -> ReceivedRequest | None:
        try:
            head = await stream.receive_until(b"\r\n\r\n", MAX_HEADER_BYTES)
        except anyio.IncompleteRead:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await stream.receive_exactly(int(headers.get("content-length", "0")))
        request = ReceivedRequest(
            method=method, path=path, headers=headers, body=body, number=len(self.seen) + 1
        )
        if method == "POST":
            self.seen.append(request)
        return request

    def _respond(self, request: ReceivedRequest) -> Response:
        form = request_form(request)
        if self._key and self._key not in sent_credentials(request):
            return api_error_response(form, 401, "Incorrect API key provided", "invalid_api_key")
        if request.method == "GET":
            return model_list(request)
        if feature := missing_feature(request, self._features):
            return unsupported_response(request, feature, self.unsupported_message)
        if problem := self._problem(request):
            return api_error_response(form, 400, problem, "invalid_request_error")
        if request.path.endswith("/embeddings"):
            return embeddings(request, self.embed)
        reply: Reply = self._script(request)
        if fault := self._faults.get(request.number):
            return faulty(fault, request, reply, self._retry_after)
        return plain_response(request, reply)

    def _problem(self, request: ReceivedRequest) -> str:
        """The error message for a bad parameter, as the services phrase it."""
        wanted = request.fields.get("max_tokens")
        if self.max_tokens and isinstance(wanted, int) and wanted > self.max_tokens:
            return f"max_tokens: {wanted} > {self.max_tokens}, which is the maximum allowed number of output tokens"
        name = self.refused_parameter
        if not name or name.encode() not in request.body:
            return ""
        return self.refusal or f"Unrecognized request argument supplied: {name}"


def sent_credentials(request: ReceivedRequest) -> tuple[str, ...]:
    names = ("api-key", "x-api-key", "authorization")
    return tuple(request.headers.get(name, "").removeprefix("Bearer ") for name in names)


def model_list(request: ReceivedRequest) -> Response:
    if request.path.endswith("/models"):
        body = {"object": "list", "data": [{"id": "mock", "object": "model"}]}
        return Response(status=200, body=(msgspec.json.encode(body),))
    return Response(status=200, body=(b'{"status": "ok"}',))


def embeddings(request: ReceivedRequest, embed: Embed) -> Response:
    texts = msgspec.convert(request.fields["input"], list[str])
    data = [
        {"object": "embedding", "index": index, "embedding": embed(text)} for index, text in enumerate(texts)
    ]
    body = {"object": "list", "model": "mock", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return Response(status=200, body=(msgspec.json.encode(body),))


async def send_response(stream: SocketStream, response: Response) -> bool:
    """Send the response; return False if the connection cannot be used afterwards."""
    if response.status:
        streamed = response.kind == "text/event-stream"
        await stream.send(response_head(response, streamed))
        for part in body_chunks(response, streamed):
            await stream.send(part)
            if response.pause:
                await anyio.sleep(response.pause)
    match response.ending:
        case "whole":
            return True
        case "closed":
            return False
        case "reset":
            reset_connection(stream)
            return False
        case "hung":
            await stream.receive(1)
            return False


def response_head(response: Response, streamed: bool) -> bytes:
    length = "Transfer-Encoding: chunked" if streamed else f"Content-Length: {sum(map(len, response.body))}"
    lines = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        f"Content-Type: {response.kind}",
        length,
        *(f"{name}: {value}" for name, value in response.headers),
    )
    return "\r\n".join((*lines, "\r\n")).encode()


def body_chunks(response: Response, streamed: bool) -> Iterable[bytes]:
    """The body as HTTP chunks, one per event, joined into large writes unless it has a pause."""
    if not streamed:
        return response.body
    end = (b"0\r\n\r\n",) if response.ending == "whole" else ()
    chunks = (*(b"%x\r\n%b\r\n" % (len(part), part) for part in response.body), *end)
    return chunks if response.pause else join_chunks(chunks)


def join_chunks(chunks: Iterable[bytes]) -> Iterable[bytes]:
    batch: list[bytes] = []
    size = 0
    for part in chunks:
        batch.append(part)
        size += len(part)
        if size >= BATCH_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


def reset_connection(stream: SocketStream) -> None:
    """Make closing send a TCP reset."""
    raw = stream.extra(SocketAttribute.raw_socket)  # a socket's attribute, no Django
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


@asynccontextmanager
async def serve_mock(
    script: Script = echo,
    faults: Mapping[int, Fault] | None = None,
    features: frozenset[Feature] = FEATURES,
    key: str = "",
    retry_after: str = "1",
) -> AsyncGenerator[MockServer, None]:
    """Run a server on a free port of the loopback address inside the context."""
    server = MockServer(script, faults, features, key, retry_after)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # a socket's attribute, no Django
    server.url = f"http://127.0.0.1:{port}/v1"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()
