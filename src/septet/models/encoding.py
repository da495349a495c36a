"""Caches encoded messages, since consecutive requests share most of their history."""

import base64
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.messages import Message
from septet.errors import BadConfig, ModelFailed
from septet.models.credentials import Credentials
from septet.models.faults import DECODE_ERRORS, Fault, error_for
from septet.models.http import HttpClient

EncodeMessage = Callable[[Message | None, Message], Awaitable[bytes]]
"""Encodes a message, given the one before it (None for the first); the result includes the separator."""

LoadBlob = Callable[[str], Awaitable[bytes]]
"""Loads the content of a blob by its address."""

MAX_ROLES = 64

MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


class HistoryCache:
    """Keeps the encoded last request of each role, so that only new messages have to be encoded."""

    def __init__(self, encode: EncodeMessage) -> None:
        self._encode = encode
        self._prefixes: dict[str, _Prefix] = {}

    async def encode(self, role: str, messages: tuple[Message, ...]) -> bytes:
        prefix = self._prefixes.pop(role, None) or _Prefix()
        # Taken out meanwhile: a parallel request of the same role encodes everything itself, so no buffer is shared.
        prefix.truncate(messages)
        for message in messages[len(prefix.messages) :]:
            before = prefix.messages[-1] if prefix.messages else None
            prefix.add(message, await self._encode(before, message))
        self._prefixes[role] = prefix
        if len(self._prefixes) > MAX_ROLES:
            del self._prefixes[next(iter(self._prefixes))]
        return bytes(prefix.encoded)


class _Prefix:
    """The messages in `encoded`, and the offset at which each of them ends."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.ends: list[int] = []
        self.encoded = bytearray()

    def truncate(self, messages: tuple[Message, ...]) -> None:
        """Keep only the messages that `messages` begins with too."""
        count = len(self.messages)
        if list(messages[:count]) != self.messages:
            count = common_length(self.messages, messages)
        del self.messages[count:]
        del self.ends[count:]
        del self.encoded[self.ends[-1] if self.ends else 0 :]

    def add(self, message: Message, encoded: bytes) -> None:
        self.messages.append(message)
        self.encoded += encoded
        self.ends.append(len(self.encoded))


def common_length(first: Sequence[Message], second: Sequence[Message]) -> int:
    """The number of messages that two histories have in common at the start."""
    pairs = zip(first, second, strict=False)
    return next(
        (index for index, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second))
    )


class EncodedImage:
    """An image as the wire formats need it: its media type and its content in base64."""

    def __init__(self, content: bytes) -> None:
        self.media_type = media_type(content)
        self.base64 = base64.b64encode(content).decode()


def media_type(content: bytes) -> str:
    return next((kind for magic, kind in MAGIC if content.startswith(magic)), "image/png")


async def encode_images(load: LoadBlob | None, message: Message) -> list[EncodedImage]:
    return [EncodedImage(content) for content in await load_images(load, message)]


async def load_images(load: LoadBlob | None, message: Message) -> list[bytes]:
    """Load the images of a message."""
    if not message.images:
        return []
    if load is None:
        raise BadConfig("a message has images and this model was opened without a blob store")
    return [await load(address) for address in message.images]


BATCH_SIZE = 64
MAX_TEXT_LENGTH = 8_000
"""In characters; services refuse longer texts."""


class EmbeddingItem(Value):
    embedding: tuple[float, ...]
    index: int = 0


class Embeddings(Value):
    data: tuple[EmbeddingItem, ...]


class Embedder:
    """`url` is the full address of the embeddings endpoint."""

    def __init__(self, url: str, model: str, credentials: Credentials, http: HttpClient) -> None:
        self.model = model
        self._url = url
        self._credentials = credentials
        self._http = http

    async def __call__(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """Return a vector for each text. Raises ModelFailed or NoModel."""
        vectors: list[tuple[float, ...]] = []
        for start in range(0, len(texts), BATCH_SIZE):
            vectors += await self._embed_batch(
                [text[:MAX_TEXT_LENGTH] for text in texts[start : start + BATCH_SIZE]]
            )
        return vectors

    async def _embed_batch(self, texts: list[str]) -> list[tuple[float, ...]]:
        body = msgspec.json.encode({"model": self.model, "input": texts})
        try:
            async with self._http.post(self._url, await self._credentials(), body) as incoming:
                content = b"".join([piece async for piece in incoming])
        except Fault as fault:
            raise error_for(fault, self.model) from fault
        try:
            items = msgspec.json.decode(content, type=Embeddings).data
        except DECODE_ERRORS as error:
            raise ModelFailed(
                f"{self.model}: the answer has no vectors ({error})", "check the model's name"
            ) from error
        if len(items) != len(texts):
            raise ModelFailed(
                f"{self.model}: {pluralize(len(items), 'vector')} came for {pluralize(len(texts), 'text')}",
                "check the model's name",
            )
        return [item.embedding for item in sorted(items, key=lambda item: item.index)]
