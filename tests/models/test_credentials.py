"""Keys of providers: kept for their owner only."""

from collections.abc import Generator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.compat import properties

from septet.errors import BadConfig, BadUsage
from septet.models.credentials import KeyFile


def test_keys_are_kept_replaced_and_forgotten(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "config" / "keys.json")
    assert keys.read() == {}
    keys.set("openai", "one")
    keys.set("anthropic", "two")
    keys.set("openai", "three")
    assert keys.read() == {"openai": "three", "anthropic": "two"}
    keys.set("openai", "")
    assert keys.names() == ["anthropic"]


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    keys.set("openai", "secret")
    assert keys.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["keys.json"]


def test_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    keys.set("openai", "secret")
    keys.path.chmod(0o644)
    with pytest.raises(BadConfig, match="chmod 600"):
        keys.read()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"openai": 1}', b"\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(BadConfig, match=r"keys\.json"):
        KeyFile(path).read()


class Safe(KeyringBackend):
    """A keyring that forgets with the test, or that is locked."""

    @properties.classproperty
    def priority(cls) -> float:  # noqa: N805
        return 1

    def __init__(self, fault: Exception | None = None) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self._fault = fault

    def _open(self) -> dict[tuple[str, str], str]:
        if self._fault is not None:
            raise self._fault
        return self.kept

    def get_password(self, service: str, username: str) -> str | None:
        return self._open().get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self._open()[service, username]


@pytest.fixture
def safe() -> Generator[Safe]:
    before, own = keyring.get_keyring(), Safe()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def test_a_key_may_be_in_the_keyring_of_the_desktop(tmp_path: Path, safe: Safe) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    keys.set("openai", "secret", keyring=True)
    assert safe.kept == {("septet", "openai"): "secret"}
    assert b"secret" not in keys.path.read_bytes()
    assert keys.read() == {"openai": "secret"}
    keys.set("openai", "newer", keyring=True)
    assert (safe.kept, keys.read()) == ({("septet", "openai"): "newer"}, {"openai": "newer"})
    keys.set("openai", "plain")
    assert (safe.kept, keys.read()) == ({}, {"openai": "plain"})


def test_a_key_that_is_forgotten_leaves_the_keyring_too(tmp_path: Path, safe: Safe) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    keys.set("openai", "secret", keyring=True)
    keys.set("openai", "", keyring=True)
    assert (safe.kept, keys.names()) == ({}, [])
    keys.set("openai", "secret", keyring=True)
    safe.kept.clear()
    assert keys.read() == {"openai": ""}
    keys.remove("openai")
    assert keys.names() == []


@pytest.mark.parametrize(("fault", "why"), [(OSError("locked\nfor good"), "locked"), (OSError(), "OSError")])
def test_a_keyring_that_fails_says_what_it_does_not_do(tmp_path: Path, fault: OSError, why: str) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    before = keyring.get_keyring()
    keyring.set_keyring(Safe())
    keys.set("openai", "secret", keyring=True)
    keyring.set_keyring(Safe(fault))
    with pytest.raises(BadConfig) as store:
        keys.set("openai", "newer", keyring=True)
    with pytest.raises(BadConfig) as read:
        keys.read()
    with pytest.raises(BadConfig) as delete:
        keys.set("openai", "plain")
    keyring.set_keyring(before)
    assert [one.value.cause for one in (store, read, delete)] == [
        f"the keyring does not store the key ({why})",
        f"the keyring does not return the key ({why})",
        f"the keyring does not delete the key ({why})",
    ]


def test_a_key_that_is_not_there_cannot_be_removed(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    with pytest.raises(BadUsage) as none:
        keys.remove("openai")
    assert (none.value.cause, none.value.remedy) == (
        "no key is stored for 'openai'",
        "septet keys set openai stores one",
    )
    keys.set("azure", "a")
    keys.set("anthropic", "b")
    with pytest.raises(BadUsage) as other:
        keys.remove("openai")
    assert other.value.remedy == "there are keys for anthropic, azure"
