"""Which members and conductors take part in chats, and from which machines."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from septet.common.values import Value

HEARTBEAT = 2.0
"""Seconds between two heartbeats."""
GONE_AFTER = 3 * HEARTBEAT
"""Seconds without a heartbeat after which a participant counts as gone."""

Kind = Literal["member", "conductor"]


class Presence(Value):
    """A participant's heartbeat: the `roles` that it serves, the `chats` that it conducts."""

    kind: Kind
    name: str
    machine: str
    pid: int
    since: float
    roles: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()


class Participant(Value, omit_defaults=False):
    """`silent` is the seconds since its last heartbeat; `key` is the key under which it publishes them."""

    presence: Presence
    silent: float
    key: str = ""

    @property
    def is_present(self) -> bool:
        return self.silent < GONE_AFTER


def silent_conductors(people: Sequence[Participant]) -> list[Participant]:
    """Return the conductors that are gone, each with its chats that nobody else conducts."""
    taken = {chat for one in people if one.is_present for chat in one.presence.chats}
    return [
        replace(one, presence=replace(one.presence, chats=left_by(one, taken)))
        for one in people
        if not one.is_present and one.presence.kind == "conductor"
    ]


def left_by(gone: Participant, taken: set[str]) -> tuple[str, ...]:
    return tuple(chat for chat in gone.presence.chats if chat not in taken)


def other_conductors(people: Sequence[Participant], chat: str, own: str) -> list[Participant]:
    """Return other participants that conduct the chat."""
    return [one for one in people if one.is_present and one.key != own and chat in one.presence.chats]
