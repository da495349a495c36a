"""A program's run: what is asked of a sandbox and what comes back."""

from collections.abc import Mapping
from typing import Literal

from septet.common.values import Value
from septet.domain.files import FileChange
from septet.domain.pytest_report import TestReport, parse_report

MEBIBYTE = 1 << 20

Bound = Literal["time", "cpu", "memory", "processes", "open files", "output", "disk", "file size", "stopped"]


class Limits(Value):
    """What one run may use. `kept_output` is how much of each stream goes into the log (head and tail)."""

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
    """The program has a screen: once what it shows has settled, or after `seconds`, a picture is left and it is ended.

    Without a `picture` it runs to its end, as tests of windows do. One that only might show something (not
    `needed`) may also just end.
    """

    picture: str = "screenshot.png"
    seconds: float = 10.0
    needed: bool = False


class Server(Value, tag="server"):
    """The program is asked once for `path` on the port that it opens (or on `port`), its answer shown, then ended.

    Where it says what the answer `holds`, that is a success only with a status of 2xx and that text in the body.
    """

    path: str = "/"
    port: int = 0
    seconds: float = 20.0
    needed: bool = False
    holds: str | None = None


class Cell(Value, tag="cell"):
    """Code in a kernel that has run the `earlier` cells, and no others; the job's command is not used."""

    code: str
    earlier: tuple[str, ...] = ()


Mode = Screen | Server | Cell
"""Ways to run what does not simply end, or does not begin anew."""

ModeName = Literal["", "screen", "server", "cell"]

Purpose = Literal[
    "run",
    "tests",
    "tests alone",
    "tests as found",
    "tests again",
    "tests on base",
    "check",
    "hollow check",
    "script",
    "baseline",
]
"""What something is run for: the program, its tests, a requirement, a tool's script, or (`baseline`) the tests of the
base before anything was changed. `tests as found` are the base's own, over the newest program, `tests on base` the
version's over the base's program, and `tests again` those that are newly red, once more. `tests alone` and
`hollow check` repeat tests and checks without a working program: what still passes then proves nothing.
"""
CONTROLS: frozenset[Purpose] = frozenset({"tests alone", "hollow check"})
NO_FAILURES: frozenset[Purpose] = frozenset({*CONTROLS, "tests again", "tests on base", "baseline"})
"""Runs that tell something about tests: what fails in them is no failure of the version."""
ControlName = Literal["hollow", "results", "operators", "constants"]
"""What takes the program's place in a control: functions without bodies, or with something changed in each. It is what
`tests alone` are about; where nothing could take its place, the program is left out.
"""
HOLLOW: ControlName = "hollow"


class PlannedRun(Value):
    """A run that is due; `about` is the requirement that it checks."""

    purpose: Purpose
    about: str = ""


Network = Literal["off", "on"] | tuple[str, ...]
"""What a program can reach: nothing, everything public, or these hosts (`name`, or `name:port`)."""


class Job(Value):
    """A command to run with the workspace as its working directory and the only writable place.

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
    """The workspace whose packages the program has, where it is not this one."""
    mounted_at: str = ""
    """Where the program finds the workspace, if not at its own path; a rung without mounts cannot do that."""
    shared: tuple[str, ...] = ()
    """Paths below `mounted_at` that the program sees there as they are on the machine, read-only."""
    tests: bool = False
    """Run the workspace's tests by pytest and report what became of each; the command is not used."""
    only: tuple[str, ...] = ()
    """The tests to run, by path or id; without any, all of them."""
    warm: tuple[str, ...] = ()
    """Modules that a plain Python program may find imported already; the next run is prepared after this one."""

    @property
    def place(self) -> str:
        """The path of the workspace inside."""
        return self.mounted_at or self.workspace


def name_of(mode: Mode | None) -> ModeName:
    """What a log calls it."""
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
    """How a run ended. Exit status decides success ; `stopped_by` names the limit that ended it.

    A stream of which only head and tail are told is whole in a blob, up to the limit of output.
    """

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    stdout_blob: str = ""
    stderr_blob: str = ""
    seconds: float = 0.0
    stopped_by: Bound | None = None
    changes: tuple[FileChange, ...] = ()
    others: tuple[str, ...] = ()
    """Folders, links and pipes that it made."""
    rung: str = ""
    tests: TestReport | None = None
    """What became of each test, where the job was to run them."""

    @property
    def report(self) -> TestReport:
        """What became of each test, as far as it is known; a log of an older version has pytest's words only."""
        return parse_report(self.stdout) if self.tests is None else self.tests

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.stopped_by is None

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        return f"stopped by the {self.stopped_by} limit" if self.stopped_by else f"exit {self.exit_code}"
