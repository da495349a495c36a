"""Containers: what the engine's client is told. That a real engine holds is shown by the suites over all rungs."""

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from sandboxes.system_calls import ALLOW, ARGUMENTS, ENOSYS, EPERM, ERRNO

from septet.domain.runs import Job, Limits
from septet.errors import NoSandbox, SandboxFailed
from septet.sandboxes import seccomp
from septet.sandboxes.rungs.containers import IMAGE, Container, seccomp_profile, system_folders

pytestmark = pytest.mark.anyio

ENGINE = """#!/bin/sh
printf '%s\\0' "$@" >> {record}; printf '\\n' >> {record}
case "$1" in
run) {does} ;;
inspect) case "$*" in *OOMKilled*) echo {ending} ;; *) echo 0 ;; esac ;;
esac
"""


class Recorded:
    """An engine's client that writes down what it is told and does something else."""

    def __init__(self, folder: Path, does: str = "echo hello", ending: str = "exited false") -> None:
        self.record = folder / "record"
        self.program = folder / "docker"
        text = ENGINE.format(record=shlex.quote(str(self.record)), does=does, ending=ending)
        self.program.write_text(text)
        self.program.chmod(0o755)
        self.workspace = folder / 'work, "here"'
        self.workspace.mkdir()

    def container(self) -> Container:
        return Container(str(self.program), "docker")

    def job(self) -> Job:
        return Job(
            command=("python", "main.py"),
            workspace=str(self.workspace),
            limits=Limits(memory=1 << 30, processes=99),
            environment={"TOKEN": "not to be told"},
        )

    def told(self, verb: str) -> list[str]:
        lines = self.record.read_text().split("\0\n")
        return next(words for line in lines if (words := line.split("\0"))[0] == verb)


async def test_the_client_is_told_to_lock_everything(tmp_path: Path) -> None:
    engine = Recorded(tmp_path)
    result = await engine.container().run(engine.job())
    assert (result.stdout, result.rung) == ("hello\n", "docker")
    told = engine.told("run")
    pairs = {*pairwise(told)}
    assert {("--network", "none"), ("--cap-drop", "all"), ("--security-opt", "no-new-privileges")} <= pairs
    assert {("--pids-limit", "100"), ("--memory", str(1 << 30)), ("--memory-swap", str(1 << 30))} <= pairs
    assert "--read-only" in told
    assert told[told.index(IMAGE) + 1] == "/bin/sh"
    assert told[-2:] == ["python", "main.py"]
    seccomp = next(word for word in told if word.startswith("seccomp="))
    assert json.loads(Path(seccomp.partition("=")[2]).read_text())["defaultAction"] == "SCMP_ACT_ALLOW"


async def test_only_the_workspace_is_writable_and_awful_names_are_quoted(tmp_path: Path) -> None:
    engine = Recorded(tmp_path)
    await engine.container().run(engine.job())
    mounts = [word for word in engine.told("run") if word.startswith("type=bind")]
    writable = [mount for mount in mounts if not mount.endswith(",ro")]
    escaped = str(engine.workspace).replace('"', '""')
    assert writable == [f'type=bind,"src={escaped}","dst={escaped}"']
    assert not [mount for mount in mounts if "src=/," in mount or "docker.sock" in mount]


async def test_values_of_variables_are_not_on_the_command_line(tmp_path: Path) -> None:
    engine = Recorded(tmp_path, does='echo "$TOKEN"')
    result = await engine.container().run(engine.job())
    assert result.stdout == "not to be told\n"
    assert "TOKEN" in engine.told("run")
    assert "not to be told" not in engine.record.read_text()


async def test_the_container_is_removed_whatever_happens(tmp_path: Path) -> None:
    engine = Recorded(tmp_path, does="exit 3")
    assert (await engine.container().run(engine.job())).exit_code == 3
    removed = engine.told("rm")
    assert removed[-1] == engine.told("run")[3]


async def test_memory_that_ran_out_is_named(tmp_path: Path) -> None:
    engine = Recorded(tmp_path, does="exit 137", ending="exited true")
    assert (await engine.container().run(engine.job())).stopped_by == "memory"


@pytest.mark.parametrize(("code", "ending"), [(125, ""), (126, "created false"), (127, "created false")])
async def test_an_engine_that_cannot_start_a_container_is_no_failure_of_the_program(
    tmp_path: Path, code: int, ending: str
) -> None:
    engine = Recorded(tmp_path, does=f"echo 'docker: no space left' >&2; exit {code}", ending=ending)
    with pytest.raises(SandboxFailed, match=r"docker could not start the program \(docker: no space left\)"):
        await engine.container().run(engine.job())


@pytest.mark.parametrize("code", [125, 126, 127])
async def test_a_program_may_end_with_any_code(tmp_path: Path, code: int) -> None:
    engine = Recorded(tmp_path, does=f"echo 'Error: mine' >&2; exit {code}")
    assert (await engine.container().run(engine.job())).exit_code == code


async def test_an_engine_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    engine = Recorded(tmp_path)
    engine.program.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2\nexit 1\n")
    with pytest.raises(NoSandbox, match=r"docker does not work .Cannot connect to the Docker daemon"):
        await engine.container().run(engine.job())


def test_an_engine_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NoSandbox, match="podman is not installed: install podman"):
        Container.podman()


class Comparison(msgspec.Struct, rename={"value_two": "valueTwo"}):
    index: int
    value: int
    op: Literal["SCMP_CMP_EQ", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"]
    value_two: int = 0


class Rule(msgspec.Struct, rename={"error": "errnoRet"}):
    names: list[str]
    action: Literal["SCMP_ACT_ERRNO"]
    error: int
    args: list[Comparison]


class Rules(msgspec.Struct, rename="camel"):
    default_action: Literal["SCMP_ACT_ALLOW"]
    syscalls: list[Rule]


class Profile:
    """What a container engine's seccomp profile says of a call: the first rule that fits."""

    def __init__(self) -> None:
        seccomp_profile.cache_clear()
        self._rules = msgspec.json.decode(seccomp_profile(), type=Rules).syscalls

    def says(self, call: str, arguments: tuple[int, ...] = ()) -> int:
        given = [*arguments, *[0] * (6 - len(arguments))]
        for rule in self._rules:
            if call in rule.names and all(self._fits(one, given) for one in rule.args):
                return ERRNO | rule.error
        return ALLOW

    def _fits(self, one: Comparison, given: list[int]) -> bool:
        value = given[one.index]
        match one.op:
            case "SCMP_CMP_EQ":
                return value == one.value
            case "SCMP_CMP_GT":
                return value > one.value
            case "SCMP_CMP_MASKED_EQ":
                return value & one.value == one.value_two


def test_the_profile_refuses_what_the_filter_refuses() -> None:
    profile = Profile()
    assert {(call, profile.says(*call)) for call, _ in ARGUMENTS} == {*ARGUMENTS}
    assert {profile.says(name) for name in seccomp.REFUSED} == {EPERM}
    assert {profile.says(name) for name in seccomp.ABSENT} == {ENOSYS}
    assert profile.says("read") == ALLOW


def test_a_systems_folders_are_mounted_and_its_links_are_in_the_image() -> None:
    found = system_folders()
    assert [folder for folder in found if folder.is_symlink() or not folder.is_dir()] == []
    assert Path("/usr") in found
