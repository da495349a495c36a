"""What `exec` does: makes a job of words, lets its output through as it comes, tells how it ended."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import click
from msgspec.structs import replace

from septet.cli.options import Amount, Folder, Reach
from septet.cli.output import confirm, notify, put_exactly
from septet.cli.person import at_terminal
from septet.common.documents import read_text
from septet.common.languages import runner_of
from septet.common.notebooks import notebook_cells, split_cells
from septet.common.text import TerminalDecoder
from septet.common.values import Value
from septet.domain.codec import ENCODER
from septet.domain.packages import MissingPackages, Policy, wanted_words
from septet.domain.runs import MEBIBYTE, Bound, Job, Limits, Mode, Network, RunResult, Screen, Server
from septet.errors import BadUsage, NeedsPerson
from septet.team.run_modes import suggest_mode
from septet.wiring.sandbox import install_missing, run_cells, run_once

RunMode = Literal["auto", "script", "screen", "server"]
Stream = Literal["stdout", "stderr"]
REASONS: dict[Bound, str] = {
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
HIGHEST_SIGNAL = 64


@dataclass(frozen=True)
class ExecRequest:
    """What the command line asks for."""

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


class Outcome(Value, omit_defaults=False):
    """A result as `--json` tells it."""

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


class Cells(Outcome, omit_defaults=False):
    """The same for all cells together, and each for itself."""

    cells: tuple[Outcome, ...] = ()


@dataclass
class OutputRelay:
    """Hears a program: lets it be heard at once, made harmless for a terminal, and counts."""

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
    """What was run and how much of it was heard."""

    results: list[RunResult]
    truncated: bool
    in_cells: bool


async def run_request(wish: ExecRequest) -> ExecResult:
    wish.check()
    limits = Limits(seconds=wish.time, cpu_seconds=wish.time, memory=wish.memory * MEBIBYTE)
    job = Job(command=(), workspace=str(wish.folder), limits=limits, network=wish.network)
    ear = OutputRelay(silent=wish.as_json)
    if wish.packages != "off":
        await install_packages(wish)
    if wish.kernel:
        cells = cells_in(file_in_folder(wish, wish.command[0]))
        results = await run_cells(job, cells, wish.unsafe_local, ear.receive)
    else:
        results = [await run_once(command_job(job, wish), wish.unsafe_local, ear.receive)]
    ear.flush()
    return ExecResult(results, max(ear.byte_counts.values()) > limits.kept_output, wish.kernel)


async def install_packages(wish: ExecRequest) -> None:
    """What FILE lacks is installed; what could not be is said, and the program may still run without it."""
    path = wish.folder / wish.command[0]
    if path.suffix not in (".py", ".ipynb"):
        return
    source = "\n".join(cells_in(file_in_folder(wish, wish.command[0])))
    done = await install_missing(
        str(wish.folder),
        {path.name.replace(".ipynb", ".py"): source},
        package_consent(wish),
        wish.unsafe_local,
    )
    if done and done.installed:
        notify(f"septet: installed {', '.join(done.installed)} in {done.seconds:.1f} s")
    if done and done.failed:
        notify(f"septet: could not install {', '.join(done.failed)}: {done.why}")


def package_consent(wish: ExecRequest) -> Callable[[MissingPackages], bool]:
    def agree(missing: MissingPackages) -> bool:
        if wish.packages == "auto":
            return True
        if not at_terminal():
            raise NeedsPerson(f"{wanted_words(missing)} is not installed", "pass --packages auto or off")
        return confirm(f"install {wanted_words(missing)}?")

    return agree


def command_job(job: Job, wish: ExecRequest) -> Job:
    """A single word that is a file of a kind that we know is run by what runs such files."""
    first = wish.command[0]
    runner = runner_of(first)
    if not runner:
        return replace(job, command=wish.command, mode=mode_of(wish, ""))
    path = file_in_folder(wish, first)
    command = (*shlex.split(runner), *wish.command)
    return replace(job, command=command, mode=mode_of(wish, source_of(path)))


def source_of(path: Path) -> str:
    """Enough to guess by; which encoding a source has is between it and Python."""
    return path.read_text(encoding="utf-8", errors="replace") if path.suffix == ".py" else ""


def mode_of(wish: ExecRequest, source: str) -> Mode | None:
    named: dict[str, Mode] = {"screen": Screen(needed=True), "server": Server(needed=True)}
    return suggest_mode({"main.py": source}) if wish.way == "auto" else named.get(wish.way)


def file_in_folder(wish: ExecRequest, name: str) -> Path:
    path = wish.folder / name
    if not path.is_file():
        raise BadUsage(f"there is no file '{name}' in {wish.folder}", "name one with -C DIR FILE")
    return path


def cells_in(path: Path) -> tuple[str, ...]:
    if path.suffix not in (".py", ".ipynb"):
        raise BadUsage(f"{path.name} has no cells of Python", "name a .py file or a .ipynb")
    try:
        found = notebook_cells(path.read_bytes()) if path.suffix == ".ipynb" else split_cells(read_text(path))
    except ValueError as error:
        raise BadUsage(f"{path} is no notebook ({error})", "name a .py file or a .ipynb") from error
    if not found:
        raise BadUsage(f"{path} has no code", "is it the right file?")
    return found


def report_result(shown: ExecResult, as_json: bool) -> int:
    """The exit code is the program's; one that a limit ended is never 0."""
    last = shown.results[-1]
    if as_json:
        put_exactly(ENCODER.encode(outcome_of(shown)).decode())
    elif last.stopped_by:
        notify(f"septet: stopped by the {last.stopped_by} limit")
    return last.exit_code or (1 if last.stopped_by else 0)


def outcome_of(shown: ExecResult) -> Outcome:
    if not shown.in_cells:
        return run_outcome(shown.results[0], shown.truncated)
    parts = tuple(run_outcome(result, shown.truncated) for result in shown.results)
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
        truncated=shown.truncated,
        sandbox=last.sandbox,
        cells=parts,
    )


def run_outcome(result: RunResult, truncated: bool) -> Outcome:
    number = result.exit_code - 128
    signal = number if 0 < number <= HIGHEST_SIGNAL else None
    ended = REASONS[result.stopped_by] if result.stopped_by else "killed" if signal else "exited"
    return Outcome(
        exit_code=result.exit_code,
        signal=signal,
        reason=ended,
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
    help="Seconds that it may take.",
)
@click.option(
    "--memory",
    type=click.IntRange(16, 1 << 24),
    default=2048,
    show_default=True,
    metavar="MB",
    help="Megabytes that it may use.",
)
@click.option(
    *("--run-as", "--as", "way"),
    type=click.Choice(["auto", "script", "screen", "server"]),
    default="auto",
    show_default=True,
    help="How a FILE is run: on a screen and as a server it leaves what it showed.",
)
@click.option(
    "--network",
    type=Reach(),
    default="off",
    show_default=True,
    help="What it can reach: off, on, or HOST,HOST.",
)
@click.option(
    "--packages",
    type=click.Choice(["off", "ask", "auto"]),
    default="off",
    show_default=True,
    help="Whether what a FILE imports and is not here is installed, for this folder only.",
)
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object.")
@click.option("--unsafe-local", is_flag=True, help="Run WITHOUT a sandbox, with your rights.")
def execute(**given: "str | bool") -> int:
    """Run a FILE, or any command after --, in the sandbox; its exit code is ours."""
    import anyio

    from septet.cli.exec import ExecRequest, report_result, run_request

    wish = ExecRequest(**given)  # pyright: ignore[reportArgumentType]  # click has checked them
    try:
        shown = anyio.run(run_request, wish)
    except KeyboardInterrupt:
        notify("septet: interrupted; everything that ran is ended")
        return 130
    code = report_result(shown, wish.as_json)
    sys.stdout.flush()
    return code
