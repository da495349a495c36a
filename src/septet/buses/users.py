"""Who may come in, and what each may say: a member no more than its roles need."""

import json
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from septet.buses.rights import CONDUCTOR, PAGES, REACHED, TOLD, Rights, conductor_rights, member_rights
from septet.domain.tokens import token
from septet.domain.values import Value
from septet.errors import BadUsage, StoreFailed

LONGEST_NAME = 64
ACCOUNT = "SEPTET"
"""Where the log is, and who conducts. Members are in another: for them nothing exists but the ways that lead here."""
MANY = {"response_type": "stream"}
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
    def rights(self) -> Rights:
        if not self.roles:
            return conductor_rights()
        return member_rights(self.name, self.roles, sorted({*self.roles, *self.called}))


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
        before = known.get(name) or User(name=checked(name), secret=secrets.token_urlsafe(24))
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
        return self._folder / "token" if name == CONDUCTOR else self._folder / "tokens" / token(name)

    def _write(self, users: dict[str, User]) -> None:
        """The list for us, and the same for the server, which reads it anew when it is told to."""
        (self._folder / "tokens").mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self._kept, msgspec.json.encode(list(users.values())).decode())
        write_private(self._folder / "users.conf", server_form(list(users.values())))


def server_form(users: Sequence[User]) -> str:
    """A part of nats-server's configuration; JSON is one of the forms that it reads."""
    ways = [("service", subject) for subject in REACHED] + [("stream", subject) for subject in TOLD]
    accounts = {
        ACCOUNT: {
            "jetstream": "enabled",
            "users": [entry(user) for user in users if not user.roles],
            "exports": [{way: subject, **(MANY if subject == PAGES else {})} for way, subject in ways],
        },
        "MEMBERS": {
            "users": [entry(user) for user in users if user.roles],
            "imports": [{way: {"account": ACCOUNT, "subject": subject}} for way, subject in ways],
        },
    }
    return f"accounts: {json.dumps(accounts, indent=1)}\n"


def entry(user: User) -> dict[str, object]:
    rights = user.rights
    permissions = {
        "publish": {"allow": list(rights.publish), "deny": list(rights.never)},
        "subscribe": {"allow": [*rights.inbox, *rights.subscribe]},
    }
    return {"user": user.name, "password": user.secret, "permissions": permissions}


def checked(name: str) -> str:
    if not name or len(name) > LONGEST_NAME or ":" in name or not name.isprintable():
        raise BadUsage(f"'{name[:80]}' cannot be a member's name", "use a short word")
    return name


def write_private(path: Path, text: str) -> None:
    """All or nothing: a server that reads it meanwhile sees the old or the new."""
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    draft.replace(path)
