"""The system-call filter as container engines want it: the same calls as in `seccomp`, named in a JSON profile."""

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import anyio
from anyio import to_thread

from septet.common.temporary import process_folder
from septet.domain.runs import Job, RunResult
from septet.errors import NoSandbox, SandboxFailed
from septet.ports import Listener
from septet.sandboxes import seccomp, view
from septet.sandboxes.cgroups import ControlGroup, control_group_of
from septet.sandboxes.environment import environment
from septet.sandboxes.etc_files import etc_folder
from septet.sandboxes.limits import ulimit_script
from septet.sandboxes.process import RunMonitor, RunningProgram, spawn
from septet.sandboxes.runs import execute_job
from septet.sandboxes.test_report import VARIABLE, path_channel
from septet.sandboxes.users import BUSY_REMEDY

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_FAMILIES_REFUSED = sorted({*range(17)} - {*seccomp.FAMILIES})
_LAST_FAMILY = 16
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_OPENING = {"open": (1, 2), "openat": (2, 3)}
_CREATE, _SET_IDS = 0o100, (0o4000, 0o2000)

Argument = dict[str, int | str]
Rule = dict[str, object]


@cache
def profile() -> str:
    """What is not named is allowed; what runs under it also has no capability and no way to get one."""
    rules = [
        _rule([*seccomp.REFUSED], _EPERM),
        _rule([*seccomp.ABSENT], _ENOSYS),
        *_namespaces(),
        *_sockets(),
        *(_rule(["ioctl"], _EPERM, _equal(1, code)) for code in seccomp.TERMINAL_INJECTION),
        *_set_ids(),
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _rule(names: list[str], error: int, *arguments: Argument) -> Rule:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": [*arguments]}


def _equal(index: int, value: int) -> Argument:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _has(index: int, bit: int) -> Argument:
    return {"index": index, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"}


def _namespaces() -> Iterator[Rule]:
    for place in range(32):
        if seccomp.NEW_NAMESPACES >> place & 1:
            yield _rule(["clone"], _EPERM, _has(0, 1 << place))


def _sockets() -> Iterator[Rule]:
    beyond: Argument = {"index": 0, "value": _LAST_FAMILY, "op": "SCMP_CMP_GT"}
    yield _rule(["socket"], _EAFNOSUPPORT, beyond)
    for family in _FAMILIES_REFUSED:
        yield _rule(["socket"], _EAFNOSUPPORT, _equal(0, family))


def _set_ids() -> Iterator[Rule]:
    for bit in _SET_IDS:
        for name, place in _MODES.items():
            yield _rule([name], _EPERM, _has(place, bit))
        for name, (flags, mode) in _OPENING.items():
            yield _rule([name], _EPERM, _has(flags, _CREATE), _has(mode, bit))


IMAGE = "localhost/septet-view:1"
_FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "usr", "var")
_ENGINE_VARIABLES = ("HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CONTAINERS_CONF")
_CLIENT_VARIABLES = (
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
)
_ISOLATION = ("--network", "none", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")
_FIRST = 'mkdir -p "$HOME";"$@";exit $?'
"""The container's first process stays, so that signals mean to the program what they always do."""

_PAUSE = 0.02
_SECONDS = 60.0
_NOT_STARTED = (125, 126, 127)
_ENDING = "{{.State.Status}} {{.State.OOMKilled}}"
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Container:
    """Runs a job by the engine's client at `program`. The system's folders and the interpreter are the machine's."""

    program: str
    rung: str

    @classmethod
    def podman(cls) -> "Container":
        return cls.detect("podman")

    @classmethod
    def docker(cls) -> "Container":
        return cls.detect("docker")

    @classmethod
    def detect(cls, engine: str) -> "Container":
        program = shutil.which(engine)
        if program is None:
            raise NoSandbox(f"{engine} is not installed", f"install {engine}")
        return cls(program, engine)

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        workspace = view.check_workspace(job.workspace)
        await to_thread.run_sync(_prepare_image, self.program)
        return await execute_job(job, workspace, self.rung, self._launch, listen, path_channel)

    @asynccontextmanager
    async def _launch(
        self, job: Job, workspace: Path, monitor: RunMonitor, inherited: tuple[int, ...] = ()
    ) -> AsyncGenerator[RunningProgram]:
        name = f"septet-{os.getpid()}-{next(_numbers)}"
        wanted = environment(job.environment)
        command = [self.program, *arguments(self.rung, name, job, workspace, wanted)]
        variables = {**wanted, **_client_environment()}
        try:
            with spawn(command, variables) as process:
                leader = await self._first_process(name, process)
                group = ControlGroup() if leader == process.pid else control_group_of(leader)
                yield RunningProgram(process, leader, group=group)
                if process.returncode and monitor.stopped_by is None:
                    await self._explain_failure(name, process.returncode, monitor)
        finally:
            with anyio.CancelScope(shield=True):
                await self._ask("rm", "--force", name)

    async def _first_process(self, name: str, process: subprocess.Popen[bytes]) -> int:
        """The number of the container's first process, as soon as it has one: its end is everybody's end."""
        while process.poll() is None:
            found = await self._ask("inspect", "--format", "{{.State.Pid}}", name)
            if found.isdigit() and int(found):
                return int(found)
            await anyio.sleep(_PAUSE)
        return process.pid

    async def _explain_failure(self, name: str, code: int, monitor: RunMonitor) -> None:
        """A container that never ran is the engine's failure, not the program's."""
        status, killed = (await self._ask("inspect", "--format", _ENDING, name)).split() or ("", "")
        if code in _NOT_STARTED and status != "exited":
            said = monitor.stderr.text().strip().rpartition("\n")[2]
            raise SandboxFailed(f"{self.rung} could not start the program ({said})", f"{self.rung} info")
        monitor.group_limit = "memory" if killed == "true" else monitor.group_limit

    async def _ask(self, *words: str) -> str:
        finished = await to_thread.run_sync(_call_engine, self.program, words)
        return finished.stdout.decode("utf-8", "replace").strip()


def arguments(engine: str, name: str, job: Job, workspace: Path, wanted: dict[str, str]) -> list[str]:
    """What the client is told; values of variables come by its own environment, which nobody else can read."""
    size, memory = job.limits.memory // 4, str(job.limits.memory)
    return [
        *("run", "--interactive", "--name", name, *_ISOLATION, "--security-opt", f"seccomp={_profile()}"),
        *("--pids-limit", str(job.limits.processes + 1), "--memory", memory, "--memory-swap", memory),
        *("--tmpfs", f"/tmp:rw,exec,mode=1777,size={size}", "--shm-size", str(size)),  # noqa: S108  its own
        *("--tmpfs", "/sys/fs/cgroup:ro,size=4k", "--hostname", "septet", "--workdir", str(workspace)),
        *_user_options(engine),
        *_variables(wanted),
        *_mounts(workspace, job),
        *(IMAGE, "/bin/sh", "-c", f"{ulimit_script(job.limits)}{_FIRST}", "sh", *job.command),
    ]


def _user_options(engine: str) -> tuple[str, ...]:
    """Whoever runs Septet, so that what the program makes is theirs."""
    if engine == "podman" and os.getuid() != 0:
        return ("--read-only-tmpfs=false", "--userns", "keep-id")
    user = ("--user", f"{os.getuid()}:{os.getgid()}")
    return ("--read-only-tmpfs=false", *user) if engine == "podman" else user


def _variables(wanted: dict[str, str]) -> Iterator[str]:
    """Those that the client needs for itself are the only ones told by value."""
    for name, value in wanted.items():
        yield from ("--env", f"{name}={value}" if name in (*_ENGINE_VARIABLES, *_CLIENT_VARIABLES) else name)


def _mounts(workspace: Path, job: Job) -> Iterator[str]:
    yield from _mount(etc_folder(), Path("/etc"))
    for place in view.mounts_for(workspace, job.readable):
        yield from _mount(place.path, place.path, place.writable)
    for folder in system_folders():
        yield from _mount(folder, folder)
    if channel := job.environment.get(VARIABLE):
        yield from _mount(Path(channel), Path(channel), writable=True)


def _mount(source: Path, target: Path, writable: bool = False) -> Iterator[str]:
    fields = ["type=bind", f"src={source}", f"dst={target}", *(() if writable else ("ro",))]
    yield from ("--mount", ",".join(_quote_fields(fields)))


def _quote_fields(fields: Iterable[str]) -> Iterator[str]:
    """As a line of a table, which is how the engines read it."""
    for text in fields:
        yield '"' + text.replace('"', '""') + '"' if {",", '"'} & set(text) else text


def system_folders() -> list[Path]:
    return [
        folder for folder in map(Path, view.SYSTEM_FOLDERS) if folder.is_dir() and not folder.is_symlink()
    ]


def _client_environment() -> dict[str, str]:
    names = (*_ENGINE_VARIABLES, *_CLIENT_VARIABLES)
    return {name: os.environ[name] for name in names if name in os.environ}


def _call_engine(
    program: str, words: tuple[str, ...], given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = [program, *words]
    try:
        return subprocess.run(
            command,
            input=given,
            env=_client_environment(),
            timeout=_SECONDS,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        cause = f"{Path(program).name} did not answer within {_SECONDS:g} seconds"
        raise SandboxFailed(cause, BUSY_REMEDY) from error


@cache
def _profile() -> Path:
    """A file with the filter; removed when this process ends."""
    path = process_folder("calls") / "calls.json"
    path.write_text(profile())
    return path


@cache
def _prepare_image(program: str) -> None:
    """An image with nothing in it but empty folders and links: the rest is mounted."""
    if _call_engine(program, ("image", "inspect", IMAGE)).returncode == 0:
        return
    made = _call_engine(program, ("import", "-", IMAGE), _empty_system())
    if made.returncode != 0:
        said = made.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise NoSandbox(f"{Path(program).name} does not work ({said})", f"try: {Path(program).name} info")


def _empty_system() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        for path in map(Path, view.SYSTEM_FOLDERS):
            if path.is_symlink():
                link = tarfile.TarInfo(path.name)
                link.type, link.linkname = tarfile.SYMTYPE, str(path.readlink())
                archive.addfile(link)
    return content.getvalue()
