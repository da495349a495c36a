"""Credentials of a request: a key in a header, or a token that is renewed before it expires."""

import os
import stat
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from septet.errors import BadConfig, BadUsage

Credentials = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that let a request in; asked for before each one, for they may expire."""

Token = tuple[str, float]
"""The token and the moment (seconds since 1970) at which it expires."""

REFRESH_MARGIN = 300.0


def header(name: str, value: str) -> Credentials:
    """A fixed header; none at all without a value."""
    headers = {name: value} if value else {}

    async def give() -> Mapping[str, str]:
        return headers

    return give


def bearer(key: str) -> Credentials:
    return header("Authorization", f"Bearer {key}" if key else "")


def refreshed_bearer(
    fetch: Callable[[], Awaitable[Token]], now: Callable[[], float] = time.time
) -> Credentials:
    """A bearer token that is fetched anew some minutes before it expires."""
    held: list[Token] = []

    async def give() -> Mapping[str, str]:
        if not held or held[0][1] - now() < REFRESH_MARGIN:
            held[:] = [await fetch()]
        return {"Authorization": f"Bearer {held[0][0]}"}

    return give


IN_KEYRING = "keyring:"
SERVICE = "septet"


class KeyFile:
    """Provider to key. A key that the keyring holds is only named here."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mapping[str, str]:
        kept = self._stored_keys()
        return {name: from_keyring(name) if key == IN_KEYRING else key for name, key in kept.items()}

    def names(self) -> list[str]:
        return sorted(self._stored_keys())

    def set(self, provider: str, key: str, keyring: bool = False) -> None:
        """Keep a key; an empty one removes what was kept."""
        before = self._stored_keys()
        kept = {name: value for name, value in before.items() if name != provider}
        if before.get(provider) == IN_KEYRING and not (keyring and key):
            out_of_keyring(provider)
        if keyring and key:
            into_keyring(provider, key)
        if key:
            kept[provider] = IN_KEYRING if keyring else key
        self._write(kept)

    def remove(self, provider: str) -> None:
        """Remove a key that is kept. Raises BadUsage where none is."""
        names = self.names()
        if provider not in names:
            remedy = f"kept are {', '.join(names)}" if names else f"septet keys set {provider} keeps one"
            raise BadUsage(f"no key is kept for '{provider}'", remedy)
        self.set(provider, "")

    def _stored_keys(self) -> dict[str, str]:
        try:
            if os.name == "posix" and stat.S_IMODE(self.path.stat().st_mode) & 0o077:
                raise BadConfig(f"others can read your keys in {self.path}", f"chmod 600 {self.path}")
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise BadConfig(
                f"the keys in {self.path} cannot be read", "remove the file and set them again"
            ) from error

    def _write(self, kept: dict[str, str]) -> None:
        """Never readable by others, not even for a moment, and never half a file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(handle, "wb") as file:  # noqa: PTH123  # the mode was given when it was made
                file.write(msgspec.json.format(msgspec.json.encode(kept)))
            draft.replace(self.path)
        except OSError as error:
            raise BadConfig(f"{self.path} cannot be written: {error.strerror}", "check the folder") from error


def from_keyring(provider: str) -> str:
    with keyring_in_words("does not give the key"):
        import keyring

        return keyring.get_password(SERVICE, provider) or ""


def into_keyring(provider: str, key: str) -> None:
    with keyring_in_words("does not take the key"):
        import keyring

        keyring.set_password(SERVICE, provider, key)


def out_of_keyring(provider: str) -> None:
    with keyring_in_words("does not forget the key"):
        import keyring

        if keyring.get_password(SERVICE, provider) is not None:
            keyring.delete_password(SERVICE, provider)


@contextmanager
def keyring_in_words(what: str) -> Generator[None, None, None]:
    try:
        yield
    except ImportError as error:
        raise BadConfig("the keyring library is not installed", "install 'septet[keyring]'") from error
    except Exception as error:  # every system's keyring has its own way to fail
        why = str(error).partition("\n")[0] or type(error).__name__
        raise BadConfig(f"the keyring {what} ({why})", "set the key without --keyring") from error
