"""Blobs on NATS JetStream: each content in pieces that are written once, by its sha256 and whoever brought it.

Nobody can overwrite, spoil or take away what somebody else has kept: a subject takes one message, and a wrong content
under an address is passed over.
"""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256
from secrets import token_hex

import anyio
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext

from septet.errors import LogDamaged, StoreFailed

STREAM = "SEPTET_BLOBS"
BLOB = "septet.blob"
LONGEST = 120.0
"""Seconds for one content."""
PIECE = 1 << 20
TRIES = 3
TAKEN = 10077
"""The server's word that a subject has its one message already."""


class NatsBlobs:
    def __init__(self, stream: JetStreamContext) -> None:
        self._stream = stream
        self._kept: set[str] = set()

    async def put(self, content: bytes) -> str:
        address = sha256(content).hexdigest()
        async with with_timeout("the server did not keep a content"):
            for _ in range(TRIES):
                if address not in self._kept and await self._find(address) is None:
                    await self._write(address, bytes(content))
                if address in self._kept:
                    return address
        raise StoreFailed(
            "somebody keeps a content from being stored", "dismiss the members you do not trust"
        )

    async def get(self, address: str) -> bytes:
        if len(address) != 64 or not set(address) <= set("0123456789abcdef"):
            raise LogDamaged(f"'{address[:80]}' is not the address of a content", "restore the log")
        async with with_timeout("the server did not hand out a content"):
            content = await self._find(address)
        if content is None:
            raise LogDamaged(f"the content {address[:12]} is missing", "restore it from a backup")
        return content

    async def _write(self, address: str, content: bytes) -> None:
        """A piece that is there already makes it doubtful: it may be somebody else's."""
        pieces = [content[first : first + PIECE] for first in range(0, max(len(content), 1), PIECE)]
        writer = token_hex(8)
        for number, piece in enumerate(pieces):
            try:
                await self._stream.publish(f"{BLOB}.{address}.{writer}.{number}.{len(pieces)}", piece)
            except nats.js.errors.APIError as error:
                if error.err_code == TAKEN:
                    return
                raise
        self._kept.add(address)

    async def _find(self, address: str) -> bytes | None:
        """The content, of whoever brought it whole."""
        info = await self._stream.stream_info(STREAM, subjects_filter=f"{BLOB}.{address}.>")
        for subjects in complete_sets(info.state.subjects or ()):
            pieces = [await self._stream.get_last_msg(STREAM, subject) for subject in subjects]
            content = b"".join(piece.data or b"" for piece in pieces)
            if sha256(content).hexdigest() == address:
                self._kept.add(address)
                return content
        return None


def complete_sets(subjects: Iterable[str]) -> list[list[str]]:
    """The pieces of each who brought all of them, in order."""
    brought: dict[tuple[str, str], set[str]] = {}
    for subject in subjects:
        start, number, count = subject.rsplit(".", 2)
        brought.setdefault((start, count), set()).add(number)
    return [
        [f"{start}.{number}.{count}" for number in range(len(numbers))]
        for (start, count), numbers in brought.items()
        if count == str(len(numbers)) and numbers == set(map(str, range(len(numbers))))
    ]


@asynccontextmanager
async def with_timeout(trouble: str) -> AsyncGenerator[None]:
    try:
        with anyio.fail_after(LONGEST):
            yield
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise StoreFailed(f"{trouble} ({error or type(error).__name__})", "resume when it is back") from error


async def open_nats_blobs(client: Client, replicas: int = 1) -> NatsBlobs:
    """The contents that all machines of the server share."""
    stream = JetStreamContext(client)
    try:
        await stream.stream_info(STREAM)
    except nats.js.errors.NotFoundError:
        config = StreamConfig(
            name=STREAM,
            subjects=[f"{BLOB}.>"],
            storage=StorageType.FILE,
            num_replicas=replicas,
            max_msgs_per_subject=1,
            discard=DiscardPolicy.NEW,
            discard_new_per_subject=True,
            max_msg_size=2 * PIECE,
            deny_delete=True,
            deny_purge=True,
        )
        await stream.add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    return NatsBlobs(stream)
