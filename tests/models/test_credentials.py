"""Keys of providers: kept for their owner only."""

from pathlib import Path

import pytest

from septet.errors import BadConfig
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
