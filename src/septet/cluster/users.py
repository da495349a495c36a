"""The users of a server, their tokens, and the NATS subjects that each may publish and subscribe to."""

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from septet.common.text import encode_token
from septet.common.values import Value
from septet.errors import BadUsage, StoreFailed

API = "$JS.API"
LOG, LOG_STREAM = "septet.log", "SEPTET_LOG"
BLOB, BLOB_STREAM = "septet.blob", "SEPTET_BLOBS"
PRESENCE, PRESENCE_STREAM = "septet-presence", "KV_septet-presence"
PAGES = f"{API}.DIRECT.GET.{LOG_STREAM}"
"""The subject for reading many messages of the log at once."""
CONDUCTOR = "conductor"
DENIED = (f"{API}.STREAM.DELETE.>", f"{API}.STREAM.PURGE.{LOG_STREAM}", f"{API}.STREAM.MSG.DELETE.>")
"""Denied to everyone over the network: logs are append-only."""

OWN_EVENTS = (
    "model_answered",
    "member_briefed",
    "reply_refused",
    "facts_changed",
    "decision_recorded",
    "tool_called",
    "answer_given",
    "budget_reached",
)
"""Events that name their member: every member may store its own."""
ROLE_EVENTS = {
    "planner": ("plan_proposed", "challenge_decided"),
    "coder": ("version_written", "tool_answered", "snapshot_taken", "check_challenged"),
    "runner": (
        "version_written",
        "tool_answered",
        "snapshot_taken",
        "run_started",
        "run_finished",
        "evidence_found",
        "packages_wanted",
        "packages_decided.policy",
        "packages_installed",
    ),
    "reviewer": ("review_given",),
    "manager": ("speaker_chosen", "terminated"),
    "exemplar": ("example_given",),
}
"""Events of certain roles. A coder cannot claim a run or review its own work; a runner cannot decide for the person."""
MOVE_EVENTS = ("turn_opened", "chat_ended")
"""Events that pass on the floor or end the chat, by the team's policy: every member may store them."""


EXPORTED_SERVICES = (
    f"{API}.INFO",
    f"{API}.STREAM.NAMES",
    f"{API}.STREAM.INFO.*",
    f"{API}.STREAM.MSG.GET.*",
    PAGES,
    f"{LOG}.*.t.>",
    f"{BLOB}.>",
    f"$KV.{PRESENCE}.member.>",
    "septet.bus.*.*",
    "septet.said.*",
)
"""The most that any member can publish to; permissions restrict it further. Permissions alone are not enough: the
server sends its answers to any reply subject, without checking whether the requester may publish there."""
EXPORTED_STREAMS = ("septet.stored.>", "septet.work.*")
"""The most that any member can subscribe to, besides answers."""


class Permissions(Value):
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    inbox: tuple[str, ...] = ()
    deny: tuple[str, ...] = DENIED


def inbox_of(name: str) -> str:
    """The prefix of a user's reply subjects, which no other member can subscribe to."""
    return f"_INBOX_{encode_token(name)}"


def conductor_permissions() -> Permissions:
    return Permissions(publish=(">",), subscribe=(">",))


def member_permissions(name: str, roles: Sequence[str], called: Sequence[str]) -> Permissions:
    """Permissions to take turns of its roles, store their events, read logs, store blobs and send heartbeats.

    `called` are its names in chats.
    """
    return Permissions(
        publish=(
            f"{API}.INFO",
            f"{API}.STREAM.NAMES",
            *(f"{API}.STREAM.INFO.{stream}" for stream in (LOG_STREAM, BLOB_STREAM, PRESENCE_STREAM)),
            *(f"{API}.STREAM.MSG.GET.{stream}" for stream in (LOG_STREAM, BLOB_STREAM)),
            PAGES,
            f"{BLOB}.*.*.*.*",
            *(f"{LOG}.*.t.{event}" for event in storable_events(roles, called)),
            *(f"septet.bus.*.{encode_token(alias)}" for alias in called),
            "septet.said.*",
            f"$KV.{PRESENCE}.member.{encode_token(name)}.*",
        ),
        subscribe=tuple(subject for role in roles for subject in turn_subjects(role)),
        inbox=(f"{inbox_of(name)}.>",),
    )


def storable_events(roles: Sequence[str], called: Sequence[str]) -> Iterator[str]:
    """The subjects of its own events, and of moves: alone, or together with an event of its own."""
    named = [f"{kind}.{encode_token(item)}" for kind in OWN_EVENTS for item in called]
    own = [*named, *sorted({with_actor(kind) for role in roles for kind in ROLE_EVENTS.get(role, ())})]
    yield from own
    for move in ("turn_opened.*", *(f"chat_ended.{encode_token(item)}" for item in called)):
        yield move
        yield from (f"{move}.{item}" for item in own)


def with_actor(kind: str) -> str:
    """The event of any actor, unless the kind names one."""
    return kind if "." in kind else f"{kind}.*"


def turn_subjects(role: str) -> tuple[str, ...]:
    """The subjects of the role's turns: when opened, and when ordered again."""
    return (*opened_turn_subjects(role), f"septet.work.{role}")


def opened_turn_subjects(role: str) -> tuple[str, str]:
    """The subjects of the role's opened turns: by a move alone, or stored together with another event."""
    subject = f"septet.stored.*.t.turn_opened.{encode_token(role)}"
    return subject, f"{subject}.>"


MAX_NAME_LENGTH = 64
ACCOUNT = "SEPTET"
"""The NATS account of the log and the conductors. Members are in another account, with only the exported subjects."""
STREAMED_RESPONSE = {"response_type": "stream"}
"""A request with many answers: the server remembers the requester until it disconnects, otherwise only until the
answer."""


class User(Value, forbid_unknown_fields=True):
    """`roles` are the roles that a member may serve, `called` its further names in teams.

    The conductor has no roles and may write to any chat.
    """

    name: str
    secret: str
    roles: tuple[str, ...] = ()
    called: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return f"{self.name}:{self.secret}"

    @property
    def permissions(self) -> Permissions:
        if not self.roles:
            return conductor_permissions()
        return member_permissions(self.name, self.roles, sorted({*self.roles, *self.called}))


USERS = msgspec.json.Decoder(tuple[User, ...])


class Users:
    """The users of one host, stored in its folder, so that their tokens survive restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "users.json"

    def all(self) -> tuple[User, ...]:
        if not self._file.exists():
            return ()
        try:
            return USERS.decode(self._file.read_bytes())
        except msgspec.MsgspecError as error:
            raise StoreFailed(
                f"{self._file} is damaged ({error})", "remove it and invite the members again"
            ) from error

    def ensure(self, name: str, roles: Sequence[str] = (), called: Sequence[str] = ()) -> User:
        """Create or update a user; an existing one keeps its token."""
        known = {user.name: user for user in self.all()}
        existing = known.get(name) or User(name=check_user_name(name), secret=secrets.token_urlsafe(24))
        user = User(name=name, secret=existing.secret, roles=tuple(sorted(set(roles))), called=tuple(called))
        self._write({**known, name: user})
        write_private(self.token_file(name), user.token)
        return user

    def remove(self, name: str) -> None:
        known = {user.name: user for user in self.all()}
        if name not in known or name == CONDUCTOR:
            raise BadUsage(f"no member '{name}' was invited", f"invited are: {', '.join(known)}")
        del known[name]
        self._write(known)
        self.token_file(name).unlink(missing_ok=True)

    def token_file(self, name: str) -> Path:
        return self._folder / "token" if name == CONDUCTOR else self._folder / "tokens" / encode_token(name)

    def _write(self, users: dict[str, User]) -> None:
        """Write the users for us, and as configuration for the server, which reads it on reload."""
        (self._folder / "tokens").mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._file, msgspec.json.encode(list(users.values())).decode())
        write_private(self._folder / "users.conf", users_config(list(users.values())))


def users_config(users: Sequence[User]) -> str:
    """The part of nats-server's configuration with the users; nats-server accepts JSON."""
    exports = [("service", subject) for subject in EXPORTED_SERVICES] + [
        ("stream", subject) for subject in EXPORTED_STREAMS
    ]
    accounts = {
        ACCOUNT: {
            "jetstream": "enabled",
            "users": [user_entry(user) for user in users if not user.roles],
            "exports": [
                {kind: subject, **(STREAMED_RESPONSE if subject == PAGES else {})}
                for kind, subject in exports
            ],
        },
        "MEMBERS": {
            "users": [user_entry(user) for user in users if user.roles],
            "imports": [{kind: {"account": ACCOUNT, "subject": subject}} for kind, subject in exports],
        },
    }
    return f"accounts: {json.dumps(accounts, indent=1)}\n"


def user_entry(user: User) -> dict[str, object]:
    allowed = user.permissions
    permissions = {
        "publish": {"allow": list(allowed.publish), "deny": list(allowed.deny)},
        "subscribe": {"allow": [*allowed.inbox, *allowed.subscribe]},
    }
    return {"user": user.name, "password": user.secret, "permissions": permissions}


def check_user_name(name: str) -> str:
    if not name or len(name) > MAX_NAME_LENGTH or ":" in name or not name.isprintable():
        raise BadUsage(f"'{name[:80]}' cannot be a member's name", "use a short word")
    return name


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically, readable only by its owner."""
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
