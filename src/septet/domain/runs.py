"""A program's run: the job for a sandbox, and its result."""

from collections.abc import Mapping
from typing import Literal

from septet.common.values import Value
from septet.domain.files import FileChange
from septet.domain.pytest_report import TestReport, parse_report

MEBIBYTE = 1 << 20

LimitName = Literal[
    "time", "cpu", "memory", "processes", "open files", "output", "disk", "file size", "stopped"
]
"""What can stop a run before its end."""


class Limits(Value):
    """The limits of one run. `kept_output` is how much of each stream goes into the log (head and tail)."""

    seconds: float = 60.0
    cpu_seconds: float = 60.0
    memory: int = 2048 * MEBIBYTE
    processes: int = 256
    open_files: int = 1024
    file_size: int = 1024 * MEBIBYTE
    disk: int = 1024 * MEBIBYTE
    output: int = 64 * MEBIBYTE
    kept_output: int = 64 << 10


class Screen(Value, tag="screen"):
    """Takes a screenshot when the display stops changing, or after `seconds`, then terminates the program.

    Without a `picture` the program runs to its end, as tests of windows do. Unless it is `needed`, a program that
    exits without showing a window is no failure.
    """

    picture: str = "screenshot.png"
    seconds: float = 10.0
    needed: bool = False


class Server(Value, tag="server"):
    """Requests `path` once from the port that the program opens (or from `port`), then terminates the program.

    If `holds` is given, the run succeeds only if the status is 2xx and the body contains that text.
    """

    path: str = "/"
    port: int = 0
    seconds: float = 20.0
    needed: bool = False
    holds: str | None = None


class Cell(Value, tag="cell"):
    """Runs code in a kernel that has run exactly the `earlier` cells; the job's command is not used."""

    code: str
    earlier: tuple[str, ...] = ()


Mode = Screen | Server | Cell
"""How to run a program that is not a plain run-to-exit script."""

ModeName = Literal["", "screen", "server", "cell"]

Purpose = Literal[
    "run",  # the program
    "tests",  # the version's tests
    "tests alone",  # the tests without a working program: what still passes proves nothing
    "tests as found",  # the base's own tests, with the newest program
    "tests again",  # newly failing tests once more, to find unstable ones
    "tests on base",  # the version's tests, with the base's program
    "check",  # the check of a requirement
    "hollow check",  # a check without a working program, as `tests alone`
    "check on base",  # a check without the version's changes, its tests excepted
    "special cases",  # the program part by part taken away: what only the tested inputs need
    "script",  # a script of a tool
    "baseline",  # the base's tests before anything was changed
]
"""Why something is run."""
CONTROLS: frozenset[Purpose] = frozenset({"tests alone", "hollow check"})
DIAGNOSTIC_PURPOSES: frozenset[Purpose] = frozenset(
    {*CONTROLS, "check on base", "tests again", "tests on base", "special cases", "baseline"}
)
"""Purposes whose failures do not count against the version: these runs examine the tests."""
ControlName = Literal["hollow", "results", "operators", "constants"]
"""What replaces the program in a control: functions without bodies (`hollow`), or mutants with changed results,
operators or constants. It is the `about` of `tests alone`, which is empty if the program was left out instead.
"""
HOLLOW: ControlName = "hollow"


class PlannedRun(Value):
    """A run to be done; `about` is the requirement that it checks."""

    purpose: Purpose
    about: str = ""


Network = Literal["off", "on"] | tuple[str, ...]
"""The hosts that a program can reach: none, all public ones, or these (`name` or `name:port`)."""


class Job(Value):
    """A command to run with the workspace as its working directory and its only writable folder.

    `readable` are extra paths of the host that the program may read (a data file, an environment).
    """

    command: tuple[str, ...]
    workspace: str
    limits: Limits = Limits()
    environment: Mapping[str, str] = {}
    readable: tuple[str, ...] = ()
    stdin: bytes = b""
    mode: Mode | None = None
    network: Network = "off"
    home: str = ""
    """The workspace whose packages the program uses, if it is not this one."""
    mounted_at: str = ""
    """The path at which the program sees the workspace, if not its own; needs a rung with mounts."""
    shared: tuple[str, ...] = ()
    """Paths below `mounted_at` that are mounted read-only from the machine."""
    setup: str = ""
    """The folder with what the project's setup command made: shared paths that the person's folder lacks."""
    tests: bool = False
    """Run the workspace's tests with pytest and report the outcome of each; the command is not used."""
    only: tuple[str, ...] = ()
    """The tests to run, by path or id; all if empty."""
    warm: tuple[str, ...] = ()
    """Modules to import beforehand for plain Python programs; the next run is prepared after this one."""

    @property
    def place(self) -> str:
        """The path of the workspace inside the sandbox."""
        return self.mounted_at or self.workspace


def mode_name(mode: Mode | None) -> ModeName:
    """Return the mode's name in the log."""
    match mode:
        case Screen():
            return "screen"
        case Server():
            return "server"
        case Cell():
            return "cell"
        case None:
            return ""


class RunResult(Value):
    """How a run ended: its exit code, and `stopped_by`, the limit that stopped it.

    If stdout or stderr was truncated, the full stream is in the blob, up to the output limit.
    """

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    stdout_blob: str = ""
    stderr_blob: str = ""
    seconds: float = 0.0
    stopped_by: LimitName | None = None
    changes: tuple[FileChange, ...] = ()
    others: tuple[str, ...] = ()
    """Folders, links and pipes that the run made."""
    rung: str = ""
    tests: TestReport | None = None
    """The outcome of each test, if the job ran tests."""

    @property
    def report(self) -> TestReport:
        """The outcome of each test, as far as it is known; old logs have only pytest's printed summary."""
        return parse_report(self.stdout) if self.tests is None else self.tests

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.stopped_by is None

    @property
    def ending(self) -> str:
        """How the run ended, as text."""
        return f"stopped by the {self.stopped_by} limit" if self.stopped_by else f"exit {self.exit_code}"
