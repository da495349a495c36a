"""A mock model server over real sockets: streams, tool calls, schemas, and every fault on demand.

async with serving(in_order(Reply(text="hello")), faults={1: "rate limited"}) as server:
    model = ...  # any client of the OpenAI or Anthropic wire, pointed at server.url
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
    Reply,
    Script,
    SeenRequest,
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

LONGEST_HEAD = 1 << 16
BATCH = 1 << 15


class MockServer:
    """What it answers is a script; what it has been asked is kept in `seen`, the questions only."""

    def __init__(
        self,
        script: Script = echo,
        faults: Mapping[int, Fault] | None = None,
        features: frozenset[Feature] = FEATURES,
        key: str = "",
        retry_after: str = "1",
    ) -> None:
        self.seen: list[SeenRequest] = []
        self.embed: Embed = bag_of_words
        self.words = ""
        """What it says when it is asked for a feature that it does not have; its own words unless these are set."""
        self.refused = ""
        """A parameter that it does not take."""
        self.longest = 0
        """How many tokens an answer may be asked to have at most; 0 for any."""
        self.connections = 0
        self.url = ""
        self._script = script
        self._faults: Mapping[int, Fault] = faults or {}
        self._features = features
        self._key = key
        self._retry_after = retry_after

    async def serve(self, stream: SocketStream) -> None:
        """One connection, kept alive until either side closes it."""
        self.connections += 1
        buffered = BufferedByteReceiveStream(stream)
        try:
            async with stream:
                while (seen := await self._read(buffered)) is not None:
                    if not await send_response(stream, self._respond(seen)):
                        return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            return

    async def _read(self, stream: BufferedByteReceiveStream) -> SeenRequest | None:
        try:
            head = await stream.receive_until(b"\r\n\r\n", LONGEST_HEAD)
        except anyio.IncompleteRead:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await stream.receive_exactly(int(headers.get("content-length", "0")))
        seen = SeenRequest(method=method, path=path, headers=headers, body=body, number=len(self.seen) + 1)
        if method == "POST":
            self.seen.append(seen)
        return seen

    def _respond(self, seen: SeenRequest) -> Response:
        form = request_form(seen)
        if self._key and self._key not in sent_credentials(seen):
            return api_error_response(form, 401, "Incorrect API key provided", "invalid_api_key")
        if seen.method == "GET":
            return model_list(seen)
        if feature := missing_feature(seen, self._features):
            return unsupported_response(seen, feature, self.words)
        if problem := self._problem(seen):
            return api_error_response(form, 400, problem, "invalid_request_error")
        if seen.path.endswith("/embeddings"):
            return embeddings(seen, self.embed)
        reply: Reply = self._script(seen)
        if fault := self._faults.get(seen.number):
            return faulty(fault, seen, reply, self._retry_after)
        return plain_response(seen, reply)

    def _problem(self, seen: SeenRequest) -> str:
        """What is wrong with a parameter, in the words of the services."""
        wanted = seen.fields.get("max_tokens")
        if self.longest and isinstance(wanted, int) and wanted > self.longest:
            return (
                f"max_tokens: {wanted} > {self.longest}, which is the maximum allowed number of output tokens"
            )
        name = self.refused
        return (
            f"Unrecognized request argument supplied: {name}" if name and name.encode() in seen.body else ""
        )


def sent_credentials(seen: SeenRequest) -> tuple[str, ...]:
    names = ("api-key", "x-api-key", "authorization")
    return tuple(seen.headers.get(name, "").removeprefix("Bearer ") for name in names)


def model_list(seen: SeenRequest) -> Response:
    if seen.path.endswith("/models"):
        body = {"object": "list", "data": [{"id": "mock", "object": "model"}]}
        return Response(status=200, body=(msgspec.json.encode(body),))
    return Response(status=200, body=(b'{"status": "ok"}',))


def embeddings(seen: SeenRequest, embed: Embed) -> Response:
    texts = msgspec.convert(seen.fields["input"], list[str])
    data = [
        {"object": "embedding", "index": place, "embedding": embed(text)} for place, text in enumerate(texts)
    ]
    body = {"object": "list", "model": "mock", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    return Response(status=200, body=(msgspec.json.encode(body),))


async def send_response(stream: SocketStream, response: Response) -> bool:
    """Send it all; False when the connection is of no use afterwards."""
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
            abandon(stream)
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
    """The body as it goes out: an HTTP chunk an event, joined into large writes unless it is paced."""
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
        if size >= BATCH:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


def abandon(stream: SocketStream) -> None:
    """Close so that the peer sees a reset, not an end."""
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
    """A server on a free port of the loopback address for the time of the context."""
    server = MockServer(script, faults, features, key, retry_after)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(SocketAttribute.local_port)  # a socket's attribute, no Django
    server.url = f"http://127.0.0.1:{port}/v1"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()
