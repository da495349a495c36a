"""The choice of a sandbox: what really works here, or a refusal with its remedy."""

from pathlib import Path

import pytest
from anyio import create_task_group

from septet.domain.runs import Job
from septet.errors import BadUsage, NoSandbox
from septet.ports import Sandbox
from septet.sandboxes import ladder
from septet.sandboxes.ladder import RUNGS, SelfCheck, check_runs, choose_sandbox, list_rungs, self_check
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.rungs.landlock import Landlock
from septet.sandboxes.rungs.seatbelt import seatbelt_profile
from septet.sandboxes.rungs.unsafe import UnsafeLocal

pytestmark = pytest.mark.anyio


async def test_the_chosen_sandbox_runs_and_names_its_rung(tmp_path: Path) -> None:
    sandbox = await choose_sandbox()
    result = await sandbox.run(Job(command=("echo", "hello"), workspace=str(tmp_path)))
    assert (result.stdout, result.rung) == ("hello\n", "bubblewrap")


async def test_unsafe_is_only_for_those_who_ask() -> None:
    assert isinstance(await choose_sandbox(unsafe=True), UnsafeLocal)
    assert not isinstance(await choose_sandbox(), UnsafeLocal)


@pytest.mark.parametrize("program", ["/nonexistent/bwrap", "/bin/false", "/bin/true", "/bin/cat"])
async def test_a_bubblewrap_that_does_not_work_is_refused_with_the_remedy(program: str) -> None:
    with pytest.raises(NoSandbox, match=r"bubblewrap is not usable \(.*install it .*--unsafe-local"):
        await check_runs(Bubblewrap(program))


async def test_a_rung_can_be_named_and_an_unknown_one_is_refused() -> None:
    with pytest.raises(BadUsage, match="no rung 'ladder': name one of bubblewrap"):
        await choose_sandbox(rung="ladder")
    with pytest.raises(NoSandbox, match="seatbelt is not usable"):
        await choose_sandbox(rung="seatbelt")


async def test_a_variable_names_a_rung(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEPTET_SANDBOX", "landlock")
    result = await (await choose_sandbox()).run(Job(command=("true",), workspace=str(tmp_path)))
    assert result.rung == "landlock"


def broken(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(RUNGS, name, lambda: Bubblewrap("/bin/false"))


async def test_where_bubblewrap_does_not_work_the_next_rung_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(monkeypatch, "bubblewrap")
    result = await (await choose_sandbox()).run(Job(command=("true",), workspace=str(tmp_path)))
    assert result.rung == "namespaces"


async def test_the_first_run_of_a_machine_is_preceded_by_the_self_check(tmp_path: Path) -> None:
    proofs = tmp_path / "proofs"
    await choose_sandbox(proofs=proofs)
    assert [path.name for path in proofs.iterdir()] == ["bubblewrap"]


async def test_many_who_choose_at_once_on_a_fresh_home_share_one_self_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checks: list[Sandbox] = []

    async def counting(sandbox: Sandbox) -> SelfCheck:
        checks.append(sandbox)
        return await self_check(sandbox)

    monkeypatch.setattr(ladder, "self_check", counting)
    proofs = tmp_path / "home" / "sandboxes"
    async with create_task_group() as group:
        for _ in range(5):
            group.start_soon(lambda: choose_sandbox(proofs=proofs))
    assert len(checks) == 1
    assert not proofs.parent.exists(), "who only looks leaves nothing behind"
    ladder.store_proofs(proofs)
    assert (proofs / "bubblewrap").exists()


@pytest.mark.parametrize("known", ["", "another machine\n"])
async def test_what_does_not_hold_the_self_check_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, known: str
) -> None:
    """It is not believed by its name, nor by a proof of another machine."""
    monkeypatch.setitem(RUNGS, "bubblewrap", UnsafeLocal)
    (tmp_path / "bubblewrap").write_text(known)
    with pytest.raises(
        NoSandbox, match=r"bubblewrap is not secure here .read a secret, reach a port, write outside"
    ):
        await choose_sandbox(rung="bubblewrap", proofs=tmp_path)
    assert not isinstance(await choose_sandbox(proofs=tmp_path), UnsafeLocal)


async def test_a_proof_is_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    await choose_sandbox(proofs=tmp_path)
    monkeypatch.setitem(RUNGS, "bubblewrap", UnsafeLocal)
    assert isinstance(await choose_sandbox(proofs=tmp_path), UnsafeLocal), "it was not checked again"


async def test_a_weaker_rung_is_not_taken_silently(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken(monkeypatch, "bubblewrap", "namespaces")
    assert isinstance(await choose_sandbox(), Landlock)
    assert "under Landlock, which hides less" in caplog.text


async def test_where_nothing_works_every_cause_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "bubblewrap", "namespaces", "landlock")
    with pytest.raises(
        NoSandbox, match=r"bubblewrap is not .*namespaces is not .*landlock is not .*--unsafe-local"
    ):
        await choose_sandbox()


async def test_every_rung_is_reported_with_its_trouble() -> None:
    found = {rung.name: rung for rung in await list_rungs()}
    assert found["bubblewrap"].usable
    assert "macOS" in found["seatbelt"].error


def test_a_profile_of_macos_quotes_what_it_allows() -> None:
    rules = seatbelt_profile(["/usr"], ['/project "here"'], ["/project/.git"])
    assert '(allow file-read* (subpath "/usr"))' in rules
    assert r'(subpath "/project \"here\"")' in rules
    assert rules.endswith('(deny file-write* (subpath "/project/.git"))\n'), "the last rule that fits decides"
    assert rules.startswith("(version 1)\n(deny default)\n")
