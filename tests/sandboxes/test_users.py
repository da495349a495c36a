"""Identities: a machine that is too busy to prepare one is said to be so, with the remedy; and what /etc holds."""

from pathlib import Path

import pytest

from septet.errors import SandboxFailed
from septet.sandboxes import users
from septet.sandboxes.rungs import containers
from septet.sandboxes.users import CURRENT_USER


def test_a_preparation_that_takes_too_long_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(users, "_TIMEOUT", 0.0)
    with pytest.raises(SandboxFailed, match=r"not ready within 0 seconds.*the chat can be resumed"):
        users._prepare_user(1_700_000_000, (tmp_path,))  # pyright: ignore[reportPrivateUsage]


def test_an_engine_that_does_not_answer_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(containers, "_TIMEOUT", 0.0)
    with pytest.raises(SandboxFailed, match=r"sleep did not answer.*the chat can be resumed"):
        containers._call_engine("/bin/sleep", ("10",))  # pyright: ignore[reportPrivateUsage]


def test_the_machines_choices_of_programs_are_kept_without_their_manuals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    choices = tmp_path / "alternatives"
    choices.mkdir()
    (choices / "cc").symlink_to("/usr/bin/gcc")
    (choices / "cc.1.gz").symlink_to("/usr/share/man/man1/gcc.1.gz")
    monkeypatch.setattr(users, "_ETC", tmp_path)
    copies = list((users.etc_folder.__wrapped__() / "alternatives").iterdir())
    assert [(copy.name, str(copy.readlink())) for copy in copies] == [("cc", "/usr/bin/gcc")]


def found(name: str) -> str | None:
    return f"/usr/bin/{name}"


def missing(_: str) -> str | None:
    return None


def test_where_no_identity_can_be_prepared_programs_run_as_ourselves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails = tmp_path / "fails.py"
    fails.write_text("raise SystemExit(1)\n")
    monkeypatch.setattr(users, "_STAGING", fails)
    monkeypatch.setattr(users.shutil, "which", found)
    assert users._prepare_user(1_700_000_000, (tmp_path,)) is CURRENT_USER  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(users.shutil, "which", missing)
    assert users._prepare_user(1_700_000_000, (tmp_path,)) is CURRENT_USER  # pyright: ignore[reportPrivateUsage]
