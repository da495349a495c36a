"""Messages encoded once: a request shares most of its history with the one before it."""

import base64
from collections.abc import Awaitable, Callable, Sequence

from septet.domain.messages import Message
from septet.errors import BadConfig

Encode = Callable[[Message | None, Message], Awaitable[bytes]]
"""The bytes of a message after another one (None: it is the first), the separator included."""

Loader = Callable[[str], Awaitable[bytes]]
"""The content of a blob by its address."""

MAX_ROLES = 64

MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


class HistoryCache:
    """What the last request of each role looked like, so that only new messages cost anything."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._prefixes: dict[str, _Prefix] = {}

    async def encode(self, role: str, messages: tuple[Message, ...]) -> bytes:
        kept = self._prefixes.pop(role, None) or _Prefix()
        # A parallel request of the same role finds nothing here and encodes afresh: nobody shares a buffer.
        kept.truncate(messages)
        for message in messages[len(kept.messages) :]:
            before = kept.messages[-1] if kept.messages else None
            kept.add(message, await self._encode(before, message))
        self._prefixes[role] = kept
        if len(self._prefixes) > MAX_ROLES:
            del self._prefixes[next(iter(self._prefixes))]
        return bytes(kept.text)


class _Prefix:
    """The messages that `text` encodes, and where in it each of them ends."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.ends: list[int] = []
        self.text = bytearray()

    def truncate(self, messages: tuple[Message, ...]) -> None:
        """Keep only what the new messages begin with too."""
        count = len(self.messages)
        if list(messages[:count]) != self.messages:
            count = common_length(self.messages, messages)
        del self.messages[count:]
        del self.ends[count:]
        del self.text[self.ends[-1] if self.ends else 0 :]

    def add(self, message: Message, encoded: bytes) -> None:
        self.messages.append(message)
        self.text += encoded
        self.ends.append(len(self.text))


def common_length(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many messages two histories have in common at the start."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


class EncodedImage:
    """An image as a wire wants it: its media type and its content in base64."""

    def __init__(self, content: bytes) -> None:
        self.kind = media_type(content)
        self.text = base64.b64encode(content).decode()


def media_type(content: bytes) -> str:
    return next((kind for magic, kind in MAGIC if content.startswith(magic)), "image/png")


async def encoded_images(load: Loader | None, message: Message) -> list[EncodedImage]:
    return [EncodedImage(content) for content in await load_images(load, message)]


async def load_images(load: Loader | None, message: Message) -> list[bytes]:
    """The images of a message."""
    if not message.images:
        return []
    if load is None:
        raise BadConfig("a message has images and this model was opened without a blob store")
    return [await load(address) for address in message.images]
