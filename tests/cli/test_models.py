"""`septet keys`: kept in a file of one's own or in the keyring, and forgotten there too."""

import sys
from pathlib import Path

import pytest
from cli.commands import Septet

SECRET = "sk-ant-very-secret-4711"


@pytest.fixture
def keyring(tmp_path: Path) -> dict[str, str]:
    """A real keyring that lives in a file of this test's own."""
    return {
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring",
        "XDG_DATA_HOME": str(tmp_path / "share"),
    }


def found(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text in path.read_text()]


def test_a_key_in_a_file_is_the_owners_alone_and_shown_to_nobody(septet: Septet) -> None:
    kept = septet("keys", "set", "anthropic", stdin=f"{SECRET}\n")
    assert kept.returncode == 0, kept.stderr
    assert SECRET not in kept.stdout + kept.stderr
    file = septet.home / "config" / "keys.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert septet("keys", "list").stdout == "anthropic\n"
    assert "chosen: anthropic/" in septet("models").stdout


def test_a_key_in_the_keyring_is_used_and_is_in_no_file_of_ours(
    septet: Septet, keyring: dict[str, str], tmp_path: Path
) -> None:
    kept = septet("keys", "set", "anthropic", "--keyring", stdin=f"{SECRET}\n", environment=keyring)
    assert kept.returncode == 0, kept.stderr
    assert "stored the key of anthropic in the keyring" in kept.stderr
    assert found(septet.home, SECRET) == []
    assert found(tmp_path / "share", "anthropic") == ["keyring_pass.cfg"]
    chosen = septet("models", environment=keyring)
    assert "anthropic/…  a key is known" in chosen.stdout, chosen.stderr
    assert "chosen: anthropic/" in chosen.stdout
    assert SECRET not in chosen.stdout + chosen.stderr
    assert septet("keys", "rm", "anthropic", environment=keyring).returncode == 0
    assert "anthropic" not in (tmp_path / "share" / "python_keyring" / "keyring_pass.cfg").read_text()
    assert "anthropic/…" not in septet("models", environment=keyring).stdout


def test_only_a_key_that_is_kept_can_be_removed(septet: Septet) -> None:
    septet("keys", "set", "anthropic", stdin=f"{SECRET}\n")
    failed = septet("keys", "rm", "antropic")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "no key is stored for 'antropic'" in failed.stderr
    assert "there are keys for anthropic" in failed.stderr
    assert septet("keys", "rm", "anthropic").returncode == 0
    assert "septet keys set anthropic" in septet("keys", "rm", "anthropic").stderr


def test_a_keyring_that_does_not_work_is_told_in_one_line(septet: Septet) -> None:
    broken = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    failed = septet("keys", "set", "anthropic", "--keyring", stdin=f"{SECRET}\n", environment=broken)
    assert failed.returncode == 5
    assert "the keyring does not store the key" in failed.stderr
    assert len(failed.stderr.strip().splitlines()) == 1
    assert SECRET not in failed.stderr


def test_a_key_whose_keyring_is_gone_is_told_in_one_line(septet: Septet, keyring: dict[str, str]) -> None:
    septet("keys", "set", "anthropic", "--keyring", stdin=f"{SECRET}\n", environment=keyring)
    failed = septet("models", environment={"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"})
    assert failed.returncode == 5
    assert "the keyring does not return the key" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert sys.executable not in failed.stderr
