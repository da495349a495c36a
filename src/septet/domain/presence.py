"""Who takes part in chats from where, as far as it is known."""

from typing import Literal

from septet.domain.values import Value

BEAT = 3.0
"""Seconds between two signs of life."""
GONE = 4 * BEAT
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
    """`silent` is how many seconds ago it last said that it is there."""

    presence: Presence
    silent: float

    @property
    def there(self) -> bool:
        return self.silent < GONE
