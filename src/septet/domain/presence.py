"""Who takes part in chats from where, as far as it is known."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from septet.common.values import Value

BEAT = 2.0
"""Seconds between two signs of life."""
GONE = 3 * BEAT
"""Seconds of silence after which somebody counts as gone."""

Kind = Literal["member", "conductor"]


class Presence(Value):
    """Somebody who takes part, and what it does: `roles` that it serves, `chats` that it conducts."""

    kind: Kind
    name: str
    machine: str
    pid: int
    since: float
    roles: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()


class Seen(Value, omit_defaults=False):
    """`silent` is how many seconds ago it last said that it is there; `key` is where it says so."""

    presence: Presence
    silent: float
    key: str = ""

    @property
    def there(self) -> bool:
        return self.silent < GONE


def orphaned(people: Sequence[Seen]) -> list[Seen]:
    """Conductors that fell silent with chats in hand; each is shown with those that nobody else conducts."""
    taken = {chat for one in people if one.there for chat in one.presence.chats}
    return [
        replace(one, presence=replace(one.presence, chats=left_by(one, taken)))
        for one in people
        if not one.there and one.presence.kind == "conductor"
    ]


def left_by(gone: Seen, taken: set[str]) -> tuple[str, ...]:
    return tuple(chat for chat in gone.presence.chats if chat not in taken)


def rivals(people: Sequence[Seen], chat: str, own: str) -> list[Seen]:
    """Others who say that they conduct the chat."""
    return [one for one in people if one.there and one.key != own and chat in one.presence.chats]
