"""What each kind of user may publish and hear, as subjects of NATS."""

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
"""Where the log is read, many messages at once."""
CONDUCTOR = "conductor"
DENIED = (f"{API}.STREAM.DELETE.>", f"{API}.STREAM.PURGE.{LOG_STREAM}", f"{API}.STREAM.MSG.DELETE.>")
"""What nobody may do over the network: a log is only ever added to."""

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
"""Events that say whose they are: every member may store its own."""
ROLE_EVENTS = {
    "planner": ("plan_proposed",),
    "coder": ("version_written", "tool_answered", "snapshot_taken"),
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
"""Events that only some roles make. A coder cannot claim a run, nor judge its own work; a runner cannot decide for
the person."""
MOVE_EVENTS = ("turn_opened", "chat_ended")
"""Who has the floor passes it on or ends the chat, by the team's policy: every member may, the latter by its name."""


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
"""All that any member can ever reach; rights bound it further. Rights alone would not do: the server sends its answers
to whatever subject it is told, and asks nobody whether the asker may publish there."""
EXPORTED_STREAMS = ("septet.stored.>", "septet.work.*")
"""All that any member can ever hear, besides answers."""


class Permissions(Value):
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    inbox: tuple[str, ...] = ()
    deny: tuple[str, ...] = DENIED


def inbox_of(name: str) -> str:
    """Answers to a user come to a place of its own, which no other member can hear."""
    return f"_INBOX_{encode_token(name)}"


def conductor_permissions() -> Permissions:
    return Permissions(publish=(">",), subscribe=(">",))


def member_permissions(name: str, roles: Sequence[str], called: Sequence[str]) -> Permissions:
    """Hear the orders of its roles, store what they make, read logs, keep contents, say that it is there.

    `called` are the names under which it speaks in chats.
    """
    return Permissions(
        publish=(
            f"{API}.INFO",
            f"{API}.STREAM.NAMES",
            *(f"{API}.STREAM.INFO.{stream}" for stream in (LOG_STREAM, BLOB_STREAM, PRESENCE_STREAM)),
            *(f"{API}.STREAM.MSG.GET.{stream}" for stream in (LOG_STREAM, BLOB_STREAM)),
            PAGES,
            f"{BLOB}.*.*.*.*",
            *(f"{LOG}.*.t.{what}" for what in storable_events(roles, called)),
            *(f"septet.bus.*.{encode_token(one)}" for one in called),
            "septet.said.*",
            f"$KV.{PRESENCE}.member.{encode_token(name)}.*",
        ),
        subscribe=tuple(subject for role in roles for subject in turn_subjects(role)),
        inbox=(f"{inbox_of(name)}.>",),
    )


def storable_events(roles: Sequence[str], called: Sequence[str]) -> Iterator[str]:
    """Its own events, and moves: alone, or together with an event of its own."""
    named = [f"{kind}.{encode_token(one)}" for kind in OWN_EVENTS for one in called]
    own = [*named, *sorted({with_actor(kind) for role in roles for kind in ROLE_EVENTS.get(role, ())})]
    yield from own
    for move in ("turn_opened.*", *(f"chat_ended.{encode_token(one)}" for one in called)):
        yield move
        yield from (f"{move}.{one}" for one in own)


def with_actor(kind: str) -> str:
    """By anybody, unless it is said by whom."""
    return kind if "." in kind else f"{kind}.*"


def turn_subjects(role: str) -> tuple[str, ...]:
    """Turns of the role: as they are opened, and as they are ordered again."""
    return (*opened_turn_subjects(role), f"septet.work.{role}")


def opened_turn_subjects(role: str) -> tuple[str, str]:
    """Turns of the role: by a move alone, and by one that was stored together with what led to it."""
    subject = f"septet.stored.*.t.turn_opened.{encode_token(role)}"
    return subject, f"{subject}.>"


LONGEST_NAME = 64
ACCOUNT = "SEPTET"
"""Where the log is, and who conducts. Members are in another: for them nothing exists but the ways that lead here."""
STREAMED_RESPONSE = {"response_type": "stream"}
"""A question with many answers: the server remembers who asked until they leave. Of all others it forgets it with the
answer."""


class User(Value, forbid_unknown_fields=True):
    """`roles` are what a member may serve, `called` the names that it may have in teams besides.

    The conductor has no roles and may write any chat.
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
    """The users of one host: kept in its folder, so that their tokens outlive restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = folder / "users.json"

    def all(self) -> tuple[User, ...]:
        if not self._kept.exists():
            return ()
        try:
            return USERS.decode(self._kept.read_bytes())
        except msgspec.MsgspecError as error:
            raise StoreFailed(
                f"{self._kept} is damaged ({error})", "remove it and invite the members again"
            ) from error

    def ensure(self, name: str, roles: Sequence[str] = (), called: Sequence[str] = ()) -> User:
        """The user of that name with those rights; one that is there keeps its token."""
        known = {user.name: user for user in self.all()}
        before = known.get(name) or User(name=check_user_name(name), secret=secrets.token_urlsafe(24))
        user = User(name=name, secret=before.secret, roles=tuple(sorted(set(roles))), called=tuple(called))
        self._write({**known, name: user})
        write_private(self.token_file(name), user.token)
        return user

    def remove(self, name: str) -> None:
        known = {user.name: user for user in self.all()}
        if name not in known or name == CONDUCTOR:
            raise BadUsage(f"nobody was invited as '{name}'", f"those were: {', '.join(known)}")
        del known[name]
        self._write(known)
        self.token_file(name).unlink(missing_ok=True)

    def token_file(self, name: str) -> Path:
        return self._folder / "token" if name == CONDUCTOR else self._folder / "tokens" / encode_token(name)

    def _write(self, users: dict[str, User]) -> None:
        """The list for us, and the same for the server, which reads it anew when it is told to."""
        (self._folder / "tokens").mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._kept, msgspec.json.encode(list(users.values())).decode())
        write_private(self._folder / "users.conf", users_config(list(users.values())))


def users_config(users: Sequence[User]) -> str:
    """A part of nats-server's configuration; JSON is one of the forms that it reads."""
    ways = [("service", subject) for subject in EXPORTED_SERVICES] + [
        ("stream", subject) for subject in EXPORTED_STREAMS
    ]
    accounts = {
        ACCOUNT: {
            "jetstream": "enabled",
            "users": [user_entry(user) for user in users if not user.roles],
            "exports": [
                {way: subject, **(STREAMED_RESPONSE if subject == PAGES else {})} for way, subject in ways
            ],
        },
        "MEMBERS": {
            "users": [user_entry(user) for user in users if user.roles],
            "imports": [{way: {"account": ACCOUNT, "subject": subject}} for way, subject in ways],
        },
    }
    return f"accounts: {json.dumps(accounts, indent=1)}\n"


def user_entry(user: User) -> dict[str, object]:
    rights = user.permissions
    permissions = {
        "publish": {"allow": list(rights.publish), "deny": list(rights.deny)},
        "subscribe": {"allow": [*rights.inbox, *rights.subscribe]},
    }
    return {"user": user.name, "password": user.secret, "permissions": permissions}


def check_user_name(name: str) -> str:
    if not name or len(name) > LONGEST_NAME or ":" in name or not name.isprintable():
        raise BadUsage(f"'{name[:80]}' cannot be a member's name", "use a short word")
    return name


def write_private(path: Path, text: str) -> None:
    """All or nothing: a server that reads it meanwhile sees the old or the new."""
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
