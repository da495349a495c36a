"""Caches encoded messages, since consecutive requests share most of their history."""

import base64
from collections.abc import Awaitable, Callable, Sequence

from septet.domain.messages import Message
from septet.errors import BadConfig

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
