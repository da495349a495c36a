"""The choice of a sandbox: what really works here, or a refusal with its remedy."""

import json
import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from anyio import create_task_group

from septet.domain.runs import Job, RunResult
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


class Leaky:
    """A sandbox that runs nothing, and pretends what came of the attempts."""

    def __init__(
        self, rung: str = "leaky", succeeds: bool = True, lies: Mapping[str, object] | None = None
    ) -> None:
        self._rung = rung
        self._succeeds = succeeds
        self._lies = lies or {}

    async def run(self, job: Job, listen: object = None) -> RunResult:
        secret, port, outside, hook = job.command[3:]
        if self._lies.get("reach"):
            socket.create_connection(("127.0.0.1", int(port))).close()
        for name, path in (("outside", outside), ("hook", hook)):
            if self._lies.get(name):
                Path(path).write_text("x")
        said = {
            "secret": Path(secret).read_text() if self._lies.get("secret") else "no",
            "interfaces": self._lies.get("interfaces", ""),
            "variables": self._lies.get("variables", {}),
        }
        text = self._lies.get("said", json.dumps(said))
        return RunResult(exit_code=0 if self._succeeds else 1, stdout=str(text), rung=self._rung)


LEAKS: dict[str, dict[str, object]] = {
    "read a secret": {"secret": True},
    "reach a port": {"reach": True},
    "write outside": {"outside": True},
    "see the environment": {"variables": {"SEPTET_TEST_ONLY": "here"}},
    "see the network interfaces": {"interfaces": "Inter-|\n wired0: 1 2\n"},
    "write a git hook": {"hook": True},
}


@pytest.mark.parametrize("attempt", LEAKS)
async def test_each_attempt_that_succeeds_is_named_and_holds_a_rung_back(
    attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_TEST_ONLY", "here")
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "wired0")])
    check = await self_check(Leaky("leaky", True, LEAKS[attempt]))
    assert (check.rung, check.ran, check.let_through, check.holds) == ("leaky", True, (attempt,), False)
    assert [one.attempt for one in check.results] == [*ladder.ATTEMPTS]


async def test_a_hook_is_no_reason_against_a_rung_that_cannot_prevent_it() -> None:
    check = await self_check(Leaky("landlock", True, {"hook": True}))
    assert (check.let_through, check.holds) == (("write a git hook",), True)
    both = await self_check(Leaky("landlock", True, {"hook": True, "secret": True}))
    assert not both.holds


async def test_what_everybody_sees_is_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPTET_TEST_ONLY", "here")
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "wired0")])
    seen = {"PWD": os.environ.get("PWD", ""), "SEPTET_TEST_ONLY": "another", "PATH": os.environ["PATH"]}
    lies = {"variables": seen, "interfaces": "    lo: 0\n wired01: 0\n"}
    check = await self_check(Leaky("leaky", True, lies))
    assert (check.let_through, check.holds) == ((), True)


@pytest.mark.parametrize(("succeeds", "lies"), [(True, {"said": "[]"}), (False, {}), (True, {"said": ""})])
async def test_a_check_that_did_not_run_proves_nothing(succeeds: bool, lies: dict[str, str]) -> None:
    check = await self_check(Leaky("leaky", succeeds, lies))
    assert (check.ran, check.holds, check.let_through) == (False, False, ())
    assert not SelfCheck(rung="x", ran=False, results=()).holds


async def test_a_trial_run_must_say_exactly_that_it_works() -> None:
    class Echo:
        def __init__(self, stdout: str, code: int = 0) -> None:
            self._result = RunResult(exit_code=code, stdout=stdout)

        async def run(self, job: Job, listen: object = None) -> RunResult:
            return self._result

    good = Echo("works\n")
    assert await check_runs(good, "mine") is good
    for bad in (Echo("works"), Echo("works\n", 1)):
        with pytest.raises(NoSandbox, match=r"mine is not usable \(a trial run ended with"):
            await check_runs(bad, "mine")


async def test_a_proof_is_of_this_kernel_and_a_command_that_fails_makes_no_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ladder, "_PROVEN", {})
    checked: list[str] = []

    async def check(sandbox: Sandbox) -> SelfCheck:
        checked.append("x")
        return SelfCheck(rung="mine", ran=True, results=())

    monkeypatch.setattr(ladder, "self_check", check)
    prove, sandbox = ladder._prove, Leaky()  # pyright: ignore[reportPrivateUsage]  # when it is checked again
    assert not ladder.has_proofs()
    assert await prove(sandbox, "mine", None) is sandbox
    await prove(sandbox, "mine", tmp_path / "none" / "proofs")
    await prove(sandbox, "mine", tmp_path / "none" / "proofs")
    assert (len(checked), ladder.has_proofs(), (tmp_path / "none").exists()) == (1, True, False)
    await prove(sandbox, "mine", tmp_path / "proofs")
    assert (tmp_path / "proofs" / "mine").read_text() == f"{platform.platform()}\n"
    monkeypatch.setattr(ladder, "_PROVEN", {})
    await prove(sandbox, "mine", tmp_path / "proofs")
    assert len(checked) == 2, "believed by its file"
    (tmp_path / "proofs" / "mine").write_text("another kernel\n")
    await prove(sandbox, "mine", tmp_path / "proofs")
    assert len(checked) == 3
