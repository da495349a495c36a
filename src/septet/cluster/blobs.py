"""Blobs on NATS JetStream: each in pieces that are written once, under subjects with its sha256 and its writer.

No member can overwrite, damage or delete what another has stored: a subject takes one message, and wrong content
under an address is ignored.
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
TIMEOUT = 120.0
"""Seconds for one blob."""
PIECE_BYTES = 1 << 20
MAX_ATTEMPTS = 3
SUBJECT_TAKEN = 10077
"""The server's error code for a subject that has its one message already."""


class NatsBlobs:
    def __init__(self, stream: JetStreamContext) -> None:
        self._stream = stream
        self._stored: set[str] = set()

    async def put(self, content: bytes) -> str:
        address = sha256(content).hexdigest()
        async with with_timeout("the server did not store a blob"):
            for _ in range(MAX_ATTEMPTS):
                if address not in self._stored and await self._find(address) is None:
                    await self._write(address, bytes(content))
                if address in self._stored:
                    return address
        raise StoreFailed(
            "another member prevents a blob from being stored", "dismiss the members you do not trust"
        )

    async def get(self, address: str) -> bytes:
        if len(address) != 64 or not set(address) <= set("0123456789abcdef"):
            raise LogDamaged(f"'{address[:80]}' is not the address of a blob", "restore the log")
        async with with_timeout("the server did not return a blob"):
            content = await self._find(address)
        if content is None:
            raise LogDamaged(f"the blob {address[:12]} is missing", "restore it from a backup")
        return content

    async def _write(self, address: str, content: bytes) -> None:
        """Write the pieces. If a subject is taken, the blob does not count as stored: its piece may be wrong."""
        pieces = [
            content[first : first + PIECE_BYTES] for first in range(0, max(len(content), 1), PIECE_BYTES)
        ]
        writer = token_hex(8)
        for number, piece in enumerate(pieces):
            try:
                await self._stream.publish(f"{BLOB}.{address}.{writer}.{number}.{len(pieces)}", piece)
            except nats.js.errors.APIError as error:
                if error.err_code == SUBJECT_TAKEN:
                    return
                raise
        self._stored.add(address)

    async def _find(self, address: str) -> bytes | None:
        """The content, from any writer that has written it completely and correctly; None if there is none."""
        info = await self._stream.stream_info(STREAM, subjects_filter=f"{BLOB}.{address}.>")
        for subjects in complete_sets(info.state.subjects or ()):
            pieces = [await self._stream.get_last_msg(STREAM, subject) for subject in subjects]
            content = b"".join(piece.data or b"" for piece in pieces)
            if sha256(content).hexdigest() == address:
                self._stored.add(address)
                return content
        return None


def complete_sets(subjects: Iterable[str]) -> list[list[str]]:
    """The subjects of each writer that wrote all its pieces, in order."""
    pieces: dict[tuple[str, str], set[str]] = {}
    for subject in subjects:
        prefix, number, count = subject.rsplit(".", 2)
        pieces.setdefault((prefix, count), set()).add(number)
    return [
        [f"{prefix}.{number}.{count}" for number in range(len(numbers))]
        for (prefix, count), numbers in pieces.items()
        if count == str(len(numbers)) and numbers == set(map(str, range(len(numbers))))
    ]


@asynccontextmanager
async def with_timeout(failure: str) -> AsyncGenerator[None]:
    try:
        with anyio.fail_after(TIMEOUT):
            yield
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise StoreFailed(f"{failure} ({error or type(error).__name__})", "resume when it is back") from error


async def open_nats_blobs(client: Client, replicas: int = 1) -> NatsBlobs:
    """The blobs that all machines on the server share; creates their stream if it is missing."""
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
            max_msg_size=2 * PIECE_BYTES,
            deny_delete=True,
            deny_purge=True,
        )
        await stream.add_stream(config)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
    return NatsBlobs(stream)
