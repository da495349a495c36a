"""The rungs podman and docker: a container per run, with the filter of `seccomp` as a JSON profile."""

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
from septet.sandboxes.limits import ulimit_script
from septet.sandboxes.process import VARIABLE, RunMonitor, RunningProgram, path_channel, spawn
from septet.sandboxes.runs import execute_job
from septet.sandboxes.users import BUSY_REMEDY, etc_folder

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_FAMILIES_REFUSED = sorted({*range(17)} - {*seccomp.FAMILIES})
_LAST_FAMILY = 16
_MODE_CALLS = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_OPEN_CALLS = {"open": (1, 2), "openat": (2, 3)}
_O_CREAT, _SET_ID_BITS = 0o100, (0o4000, 0o2000)

Argument = dict[str, int | str]
Rule = dict[str, object]


@cache
def seccomp_profile() -> str:
    """The filter as JSON. Calls that are not named are allowed: programs have no capabilities and cannot gain any."""
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


def _has_bit(index: int, bit: int) -> Argument:
    return {"index": index, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"}


def _namespaces() -> Iterator[Rule]:
    for bit in range(32):
        if seccomp.NEW_NAMESPACES >> bit & 1:
            yield _rule(["clone"], _EPERM, _has_bit(0, 1 << bit))


def _sockets() -> Iterator[Rule]:
    beyond: Argument = {"index": 0, "value": _LAST_FAMILY, "op": "SCMP_CMP_GT"}
    yield _rule(["socket"], _EAFNOSUPPORT, beyond)
    for family in _FAMILIES_REFUSED:
        yield _rule(["socket"], _EAFNOSUPPORT, _equal(0, family))


def _set_ids() -> Iterator[Rule]:
    for bit in _SET_ID_BITS:
        for name, index in _MODE_CALLS.items():
            yield _rule([name], _EPERM, _has_bit(index, bit))
        for name, (flags, mode) in _OPEN_CALLS.items():
            yield _rule([name], _EPERM, _has_bit(flags, _O_CREAT), _has_bit(mode, bit))


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
_INIT_SCRIPT = 'mkdir -p "$HOME";"$@";exit $?'
"""A shell stays as PID 1, because signals have special rules for PID 1."""

_POLL_SECONDS = 0.02
_TIMEOUT = 60.0
_NOT_STARTED = (125, 126, 127)
_STATE_FORMAT = "{{.State.Status}} {{.State.OOMKilled}}"
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Container:
    """Runs jobs with the engine's client `program`. System folders and the interpreter are mounted from the machine."""

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
        program_variables = environment(job.environment)
        command = [self.program, *arguments(self.rung, name, job, workspace, program_variables)]
        variables = {**program_variables, **_client_environment()}
        try:
            with spawn(command, variables) as process:
                leader = await self._first_process(name, process)
                group = ControlGroup() if leader == process.pid else control_group_of(leader)
                yield RunningProgram(process, leader, group=group)
                if process.returncode and monitor.stopped_by is None:
                    await self._explain_failure(name, process.returncode, monitor)
        finally:
            with anyio.CancelScope(shield=True):
                await self._call("rm", "--force", name)

    async def _first_process(self, name: str, process: subprocess.Popen[bytes]) -> int:
        """The pid of the container's first process, once it has started; its end is the end of all others."""
        while process.poll() is None:
            pid = await self._call("inspect", "--format", "{{.State.Pid}}", name)
            if pid.isdigit() and int(pid):
                return int(pid)
            await anyio.sleep(_POLL_SECONDS)
        return process.pid

    async def _explain_failure(self, name: str, code: int, monitor: RunMonitor) -> None:
        """Raise SandboxFailed if the container never ran: that is the engine's failure, not the program's."""
        status, killed = (await self._call("inspect", "--format", _STATE_FORMAT, name)).split() or ("", "")
        if code in _NOT_STARTED and status != "exited":
            last_line = monitor.stderr.text().strip().rpartition("\n")[2]
            raise SandboxFailed(f"{self.rung} could not start the program ({last_line})", f"{self.rung} info")
        monitor.group_limit = "memory" if killed == "true" else monitor.group_limit

    async def _call(self, *arguments: str) -> str:
        finished = await to_thread.run_sync(_call_engine, self.program, arguments)
        return finished.stdout.decode("utf-8", "replace").strip()


def arguments(
    engine: str, name: str, job: Job, workspace: Path, program_variables: dict[str, str]
) -> list[str]:
    """The client's arguments; values of variables are passed in its environment, which other users cannot read."""
    size, memory = job.limits.memory // 4, str(job.limits.memory)
    return [
        *(
            "run",
            "--interactive",
            "--name",
            name,
            *_ISOLATION,
            "--security-opt",
            f"seccomp={_profile_file()}",
        ),
        *("--pids-limit", str(job.limits.processes + 1), "--memory", memory, "--memory-swap", memory),
        *("--tmpfs", f"/tmp:rw,exec,mode=1777,size={size}", "--shm-size", str(size)),  # noqa: S108  its own
        *("--tmpfs", "/sys/fs/cgroup:ro,size=4k", "--hostname", "septet", "--workdir", str(workspace)),
        *_user_options(engine),
        *_variables(program_variables),
        *_mounts(workspace, job),
        *(IMAGE, "/bin/sh", "-c", f"{ulimit_script(job.limits)}{_INIT_SCRIPT}", "sh", *job.command),
    ]


def _user_options(engine: str) -> tuple[str, ...]:
    """Run as the user that runs Septet, so that it owns the program's files."""
    if engine == "podman" and os.getuid() != 0:
        return ("--read-only-tmpfs=false", "--userns", "keep-id")
    user = ("--user", f"{os.getuid()}:{os.getgid()}")
    return ("--read-only-tmpfs=false", *user) if engine == "podman" else user


def _variables(program_variables: dict[str, str]) -> Iterator[str]:
    """Pass variables by name; only those that the client uses itself are passed by value."""
    for name, value in program_variables.items():
        yield from ("--env", f"{name}={value}" if name in (*_ENGINE_VARIABLES, *_CLIENT_VARIABLES) else name)


def _mounts(workspace: Path, job: Job) -> Iterator[str]:
    yield from _mount(etc_folder(), Path("/etc"))
    for mount in view.mounts_for(workspace, job.readable):
        yield from _mount(mount.path, mount.path, mount.writable)
    for folder in system_folders():
        yield from _mount(folder, folder)
    if channel := job.environment.get(VARIABLE):
        yield from _mount(Path(channel), Path(channel), writable=True)


def _mount(source: Path, target: Path, writable: bool = False) -> Iterator[str]:
    fields = ["type=bind", f"src={source}", f"dst={target}", *(() if writable else ("ro",))]
    yield from ("--mount", ",".join(_quote_fields(fields)))


def _quote_fields(fields: Iterable[str]) -> Iterator[str]:
    """Quote fields for CSV, which the engines parse."""
    for field in fields:
        yield '"' + field.replace('"', '""') + '"' if {",", '"'} & set(field) else field


def system_folders() -> list[Path]:
    return [
        folder for folder in map(Path, view.SYSTEM_FOLDERS) if folder.is_dir() and not folder.is_symlink()
    ]


def _client_environment() -> dict[str, str]:
    names = (*_ENGINE_VARIABLES, *_CLIENT_VARIABLES)
    return {name: os.environ[name] for name in names if name in os.environ}


def _call_engine(
    program: str, arguments: tuple[str, ...], stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = [program, *arguments]
    try:
        return subprocess.run(
            command,
            input=stdin,
            env=_client_environment(),
            timeout=_TIMEOUT,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        cause = f"{Path(program).name} did not answer within {_TIMEOUT:g} seconds"
        raise SandboxFailed(cause, BUSY_REMEDY) from error


@cache
def _profile_file() -> Path:
    """The path of a file with the profile; removed when this process ends."""
    path = process_folder("calls") / "calls.json"
    path.write_text(seccomp_profile())
    return path


@cache
def _prepare_image(program: str) -> None:
    """Import an image with only empty folders and links, unless it exists: the rest is mounted."""
    if _call_engine(program, ("image", "inspect", IMAGE)).returncode == 0:
        return
    imported = _call_engine(program, ("import", "-", IMAGE), _empty_system())
    if imported.returncode != 0:
        last_line = imported.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise NoSandbox(
            f"{Path(program).name} does not work ({last_line})", f"try: {Path(program).name} info"
        )


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
