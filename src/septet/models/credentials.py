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
"""Returns the headers that authenticate a request; called before each one, because they may expire."""

Token = tuple[str, float]
"""The token and when it expires, in seconds since 1970."""

REFRESH_MARGIN = 300.0


def header(name: str, value: str) -> Credentials:
    """A fixed header, or none if the value is empty."""
    headers = {name: value} if value else {}

    async def headers_of_request() -> Mapping[str, str]:
        return headers

    return headers_of_request


def bearer(key: str) -> Credentials:
    return header("Authorization", f"Bearer {key}" if key else "")


def refreshed_bearer(
    fetch: Callable[[], Awaitable[Token]], now: Callable[[], float] = time.time
) -> Credentials:
    """A bearer token that is fetched again some minutes before it expires."""
    current: list[Token] = []

    async def headers_of_request() -> Mapping[str, str]:
        if not current or current[0][1] - now() < REFRESH_MARGIN:
            current[:] = [await fetch()]
        return {"Authorization": f"Bearer {current[0][0]}"}

    return headers_of_request


KEYRING_MARKER = "keyring:"
KEYRING_SERVICE = "septet"


class KeyFile:
    """The file that maps providers to keys. For a key in the keyring it holds only a marker."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mapping[str, str]:
        keys = self._stored_keys()
        return {name: read_keyring(name) if key == KEYRING_MARKER else key for name, key in keys.items()}

    def names(self) -> list[str]:
        return sorted(self._stored_keys())

    def set(self, provider: str, key: str, keyring: bool = False) -> None:
        """Store a key; an empty one removes the stored key."""
        before = self._stored_keys()
        keys = {name: value for name, value in before.items() if name != provider}
        if before.get(provider) == KEYRING_MARKER and not (keyring and key):
            delete_from_keyring(provider)
        if keyring and key:
            write_keyring(provider, key)
        if key:
            keys[provider] = KEYRING_MARKER if keyring else key
        self._write(keys)

    def remove(self, provider: str) -> None:
        """Remove a stored key. Raises BadUsage if there is none."""
        names = self.names()
        if provider not in names:
            remedy = (
                f"there are keys for {', '.join(names)}"
                if names
                else f"septet keys set {provider} stores one"
            )
            raise BadUsage(f"no key is stored for '{provider}'", remedy)
        self.set(provider, "")

    def _stored_keys(self) -> dict[str, str]:
        try:
            if os.name == "posix" and stat.S_IMODE(self.path.stat().st_mode) & 0o077:
                raise BadConfig(f"other users can read your keys in {self.path}", f"chmod 600 {self.path}")
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            raise BadConfig(
                f"the keys in {self.path} cannot be read", "remove the file and set them again"
            ) from error

    def _write(self, keys: dict[str, str]) -> None:
        """Replace the file atomically; it is never readable by other users."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(handle, "wb") as file:  # noqa: PTH123  # os.open set the mode
                file.write(msgspec.json.format(msgspec.json.encode(keys)))
            draft.replace(self.path)
        except OSError as error:
            raise BadConfig(f"{self.path} cannot be written: {error.strerror}", "check the folder") from error


def read_keyring(provider: str) -> str:
    with keyring_errors("does not return the key"):
        import keyring

        return keyring.get_password(KEYRING_SERVICE, provider) or ""


def write_keyring(provider: str, key: str) -> None:
    with keyring_errors("does not store the key"):
        import keyring

        keyring.set_password(KEYRING_SERVICE, provider, key)


def delete_from_keyring(provider: str) -> None:
    with keyring_errors("does not delete the key"):
        import keyring

        if keyring.get_password(KEYRING_SERVICE, provider) is not None:
            keyring.delete_password(KEYRING_SERVICE, provider)


@contextmanager
def keyring_errors(failure: str) -> Generator[None, None, None]:
    """Raise BadConfig for whatever goes wrong with the keyring."""
    try:
        yield
    except ImportError as error:
        raise BadConfig("the keyring library is not installed", "install 'septet[keyring]'") from error
    except Exception as error:  # each keyring backend raises its own exceptions
        why = str(error).partition("\n")[0] or type(error).__name__
        raise BadConfig(f"the keyring {failure} ({why})", "set the key without --keyring") from error
