"""`exec`: runs a file or a command in the sandbox, passes its output on at once, and reports how it ended."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import click
from msgspec.structs import replace

from septet.cli.options import Amount, Folder, NetworkAccess
from septet.cli.output import confirm, notify, put_exactly
from septet.cli.person import at_terminal
from septet.common.documents import read_text
from septet.common.languages import run_command_prefix
from septet.common.notebooks import notebook_cells, split_cells
from septet.common.text import TerminalDecoder
from septet.common.values import Value
from septet.domain.codec import ENCODER
from septet.domain.packages import MissingPackages, Policy, wanted_words
from septet.domain.runs import MEBIBYTE, Job, LimitName, Limits, Mode, Network, RunResult, Screen, Server
from septet.errors import BadUsage, NeedsPerson
from septet.team.run_modes import suggest_mode
from septet.wiring.sandbox import install_missing_packages, run_cells, run_once

RunMode = Literal["auto", "script", "screen", "server"]
Stream = Literal["stdout", "stderr"]
REASONS: dict[LimitName, str] = {
    "time": "timed_out",
    "cpu": "cpu_limit",
    "memory": "out_of_memory",
    "processes": "process_limit",
    "open files": "open_files_limit",
    "output": "output_limit",
    "disk": "disk_limit",
    "file size": "file_size_limit",
    "stopped": "stopped",
}
MAX_SIGNAL = 64


@dataclass(frozen=True)
class ExecRequest:
    """The options of the command line."""

    command: tuple[str, ...]
    workspace: Path
    kernel: bool
    time: float
    memory: int
    way: RunMode
    network: Network
    packages: Policy
    as_json: bool
    unsafe_local: bool

    @property
    def folder(self) -> Path:
        return self.workspace

    def check(self) -> None:
        if not self.command[0].strip():
            raise BadUsage("the command is empty", "name a FILE, or a command after --")
        if self.kernel and (len(self.command) > 1 or self.way != "auto"):
            raise BadUsage("--kernel takes one FILE of cells, and nothing else", "leave out the rest")


class ExecOutcome(Value, omit_defaults=False):
    """A result as `--json` prints it."""

    exit_code: int
    signal: int | None
    reason: str
    stdout: str
    stderr: str
    duration_s: float
    files_new: tuple[str, ...]
    files_changed: tuple[str, ...]
    truncated: bool
    sandbox: str


class Cells(ExecOutcome, omit_defaults=False):
    """The outcome of all cells together, and of each one."""

    cells: tuple[ExecOutcome, ...] = ()


@dataclass
class OutputRelay:
    """Passes a program's output on at once, without control sequences on a terminal, and counts its bytes."""

    silent: bool
    byte_counts: dict[Stream, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    pieces: dict[Stream, TerminalDecoder] = field(
        default_factory=lambda: {"stdout": TerminalDecoder(), "stderr": TerminalDecoder()}
    )

    def receive(self, stream: Stream, piece: bytes) -> None:
        self.byte_counts[stream] += len(piece)
        if not self.silent:
            self.write(stream, self.pieces[stream].decode(piece), piece)

    def flush(self) -> None:
        for stream, pieces in self.pieces.items():
            self.write(stream, pieces.flush(), b"")

    def write(self, stream: Stream, text: str, piece: bytes) -> None:
        sink = sys.stdout if stream == "stdout" else sys.stderr
        if sink.isatty():
            sink.write(text)
        else:
            sink.flush()
            sink.buffer.write(piece)
        sink.flush()


@dataclass(frozen=True)
class ExecResult:
    """The results of the runs, and whether their output was truncated."""

    results: list[RunResult]
    truncated: bool
    in_cells: bool


async def run_request(request: ExecRequest) -> ExecResult:
    request.check()
    limits = Limits(seconds=request.time, cpu_seconds=request.time, memory=request.memory * MEBIBYTE)
    job = Job(command=(), workspace=str(request.folder), limits=limits, network=request.network)
    relay = OutputRelay(silent=request.as_json)
    if request.packages != "off":
        await install_packages(request)
    if request.kernel:
        cells = cells_in(file_in_folder(request, request.command[0]))
        results = await run_cells(job, cells, request.unsafe_local, relay.receive)
    else:
        results = [await run_once(command_job(job, request), request.unsafe_local, relay.receive)]
    relay.flush()
    return ExecResult(results, max(relay.byte_counts.values()) > limits.kept_output, request.kernel)


async def install_packages(request: ExecRequest) -> None:
    """Install the packages that FILE lacks; report those that failed, since the program may run without them."""
    path = request.folder / request.command[0]
    if path.suffix not in (".py", ".ipynb"):
        return
    source = "\n".join(cells_in(file_in_folder(request, request.command[0])))
    done = await install_missing_packages(
        str(request.folder),
        {path.name.replace(".ipynb", ".py"): source},
        package_consent(request),
        request.unsafe_local,
    )
    if done and done.installed:
        notify(f"septet: installed {', '.join(done.installed)} in {done.seconds:.1f} s")
    if done and done.failed:
        notify(f"septet: could not install {', '.join(done.failed)}: {done.why}")


def package_consent(request: ExecRequest) -> Callable[[MissingPackages], bool]:
    def agree(missing: MissingPackages) -> bool:
        if request.packages == "auto":
            return True
        if not at_terminal():
            raise NeedsPerson(f"{wanted_words(missing)} is not installed", "pass --packages auto or off")
        return confirm(f"install {wanted_words(missing)}?")

    return agree


def command_job(job: Job, request: ExecRequest) -> Job:
    """Build the job: a file of a known language is run by its interpreter, anything else as a command."""
    first = request.command[0]
    runner = run_command_prefix(first)
    if not runner:
        return replace(job, command=request.command, mode=mode_of(request, ""))
    path = file_in_folder(request, first)
    command = (*shlex.split(runner), *request.command)
    return replace(job, command=command, mode=mode_of(request, source_of(path)))


def source_of(path: Path) -> str:
    """Read the source to guess its mode; decoding errors do not matter for that."""
    return path.read_text(encoding="utf-8", errors="replace") if path.suffix == ".py" else ""


def mode_of(request: ExecRequest, source: str) -> Mode | None:
    named: dict[str, Mode] = {"screen": Screen(needed=True), "server": Server(needed=True)}
    return suggest_mode({"main.py": source}) if request.way == "auto" else named.get(request.way)


def file_in_folder(request: ExecRequest, name: str) -> Path:
    path = request.folder / name
    if not path.is_file():
        raise BadUsage(f"there is no file '{name}' in {request.folder}", "name one with -C DIR FILE")
    return path


def cells_in(path: Path) -> tuple[str, ...]:
    if path.suffix not in (".py", ".ipynb"):
        raise BadUsage(f"{path.name} has no cells of Python", "name a .py file or a .ipynb")
    try:
        cells = notebook_cells(path.read_bytes()) if path.suffix == ".ipynb" else split_cells(read_text(path))
    except ValueError as error:
        raise BadUsage(f"{path} is not a valid notebook ({error})", "name a .py file or a .ipynb") from error
    if not cells:
        raise BadUsage(f"{path} has no code", "is it the right file?")
    return cells


def report_result(executed: ExecResult, as_json: bool) -> int:
    """Print the result and return the program's exit code; never 0 if a limit stopped it."""
    last = executed.results[-1]
    if as_json:
        put_exactly(ENCODER.encode(exec_outcome(executed)).decode())
    elif last.stopped_by:
        notify(f"septet: stopped by the {last.stopped_by} limit")
    return last.exit_code or (1 if last.stopped_by else 0)


def exec_outcome(executed: ExecResult) -> ExecOutcome:
    if not executed.in_cells:
        return process_outcome(executed.results[0], executed.truncated)
    parts = tuple(process_outcome(result, executed.truncated) for result in executed.results)
    last = parts[-1]
    return Cells(
        exit_code=last.exit_code,
        signal=last.signal,
        reason=last.reason,
        stdout="".join(part.stdout for part in parts),
        stderr="".join(part.stderr for part in parts),
        duration_s=round(sum(part.duration_s for part in parts), 4),
        files_new=tuple(dict.fromkeys(path for part in parts for path in part.files_new)),
        files_changed=tuple(dict.fromkeys(path for part in parts for path in part.files_changed)),
        truncated=executed.truncated,
        sandbox=last.sandbox,
        cells=parts,
    )


def process_outcome(result: RunResult, truncated: bool) -> ExecOutcome:
    number = result.exit_code - 128
    signal = number if 0 < number <= MAX_SIGNAL else None
    reason = REASONS[result.stopped_by] if result.stopped_by else "killed" if signal else "exited"
    return ExecOutcome(
        exit_code=result.exit_code,
        signal=signal,
        reason=reason,
        stdout=result.stdout,
        stderr=result.stderr,
        duration_s=result.seconds,
        files_new=tuple(change.path for change in result.changes if change.kind == "new"),
        files_changed=tuple(change.path for change in result.changes if change.kind == "changed"),
        truncated=truncated,
        sandbox=result.rung,
    )


@click.command("exec", epilog="Example: septet exec -- python -c 'print(6 * 7)'")
@click.argument("command", nargs=-1, required=True, metavar="FILE | -- CMD…")
@click.option("-C", "workspace", type=Folder(), default=".", help="The folder to run in.")
@click.option(
    "--kernel", is_flag=True, help="Run FILE's cells (split by # %%, or a notebook's) in one kernel."
)
@click.option(
    *("--time", "--max-time", "time"),
    type=Amount(),
    default=60.0,
    show_default=True,
    metavar="S",
    help="The time limit in seconds.",
)
@click.option(
    "--memory",
    type=click.IntRange(16, 1 << 24),
    default=2048,
    show_default=True,
    metavar="MB",
    help="The memory limit in megabytes.",
)
@click.option(
    *("--run-as", "--as", "way"),
    type=click.Choice(["auto", "script", "screen", "server"]),
    default="auto",
    show_default=True,
    help="How a FILE is run; screen and server leave screenshots and pages.",
)
@click.option(
    "--network",
    type=NetworkAccess(),
    default="off",
    show_default=True,
    help="The hosts that it can reach: off, on, or HOST,HOST.",
)
@click.option(
    "--packages",
    type=click.Choice(["off", "ask", "auto"]),
    default="off",
    show_default=True,
    help="Whether missing imports of a FILE are installed, for this folder only.",
)
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object.")
@click.option("--unsafe-local", is_flag=True, help="Run WITHOUT a sandbox, with your rights.")
def execute(**given: "str | bool") -> int:
    """Run a FILE, or any command after --, in the sandbox, and exit with its exit code."""
    import anyio

    from septet.cli.exec import ExecRequest, report_result, run_request

    request = ExecRequest(**given)  # pyright: ignore[reportArgumentType]  # click has checked them
    try:
        executed = anyio.run(run_request, request)
    except KeyboardInterrupt:
        notify("septet: interrupted; all processes were stopped")
        return 130
    code = report_result(executed, request.as_json)
    sys.stdout.flush()
    return code
