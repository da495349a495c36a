"""A box for programs that are measured: they can write only to one folder, and end with whoever started them.

Run as `python box.py FOLDER [READABLE …] -- COMMAND …` on a machine without bubblewrap: the tree is read-only, /tmp
is empty but for FOLDER and what is named READABLE, processes are the box's own. The network stays, for the model is
there. Needs Linux 5.12 and user namespaces.
"""

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

Box = Literal["bwrap", "namespaces", "none"]
"""`none` is no box: a program has the rights of whoever starts it."""

NEWNS, NEWIPC, NEWUSER, NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
BIND, RECURSIVE, PRIVATE = 4096, 16384, 1 << 18
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, READ_ONLY = 442, -100, 0x8000, 1
SET_PDEATHSIG = 1

kernel = ctypes.CDLL(None, use_errno=True)


def command_in(box: Box, folder: Path, readable: Sequence[Path], command: Sequence[str]) -> list[str]:
    """The command that runs another one in a box."""
    if box == "none":
        return [*command]
    if box == "namespaces":
        return [sys.executable, "-I", "-S", __file__, *map(str, (folder, *readable)), "--", *command]
    tree = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    seen = [word for path in readable for word in ("--ro-bind", str(path), str(path))]
    apart = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--chdir", str(folder)]
    return ["bwrap", *tree, *seen, "--bind", str(folder), str(folder), *apart, "--", *command]


def choose_box() -> Box:
    """The first one in which a program can write to its folder and nowhere else."""
    boxes: tuple[Box, ...] = ("bwrap", "namespaces")
    for box in boxes:
        if can_make(box) and holds(box):
            return box
    sys.exit("no box can be made here (neither bubblewrap nor user namespaces); --unboxed does without")


def can_make(box: Box) -> bool:
    return shutil.which("bwrap") is not None if box == "bwrap" else sys.platform == "linux"


def holds(box: Box) -> bool:
    with tempfile.TemporaryDirectory() as place:
        folder, outside = Path(place, "inside"), Path(place, "outside")
        folder.mkdir()
        outside.mkdir()
        code = f"touch {folder}/a {outside}/b; test $$ -lt 9 && ! test -w {__file__}"
        done = subprocess.run(
            command_in(box, folder, (outside,), ("sh", "-c", code)), capture_output=True, check=False
        )
        return done.returncode == 0 and (folder / "a").exists() and not (outside / "b").exists()


def check(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    check(kernel.mount(source.encode(), target.encode(), kind.encode() or None, flags, None), target)


def set_writable(path: str, writable: bool) -> None:
    """A mount and all below it."""
    wanted = struct.pack("=QQQQ", 0 if writable else READ_ONLY, READ_ONLY if writable else 0, 0, 0)
    check(kernel.syscall(MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, wanted, len(wanted)), path)


def enter_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    check(kernel.unshare(NEWUSER | NEWNS | NEWPID | NEWIPC), "namespaces")
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        Path("/proc/self", name).write_text(line)


def build(folder: str, readable: Sequence[str]) -> None:
    """The tree as it is, but read-only, with a /tmp of its own."""
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    opened = {path: os.open(path, os.O_PATH) for path in (*readable, folder)}
    set_writable("/", False)
    mount("proc", "/proc", "proc")
    mount("tmpfs", "/tmp", "tmpfs")
    for path, descriptor in opened.items():
        if path.startswith("/tmp/"):
            Path(path).mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, flags=BIND)
        set_writable(path, path == folder)
        os.close(descriptor)


def main(folder: str, readable: Sequence[str], command: Sequence[str]) -> int:
    enter_namespaces()
    if (pid := os.fork()) == 0:
        guarded(lambda: first_process(folder, readable, command))
    kernel.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return shell_code(os.waitpid(pid, 0)[1])


def first_process(folder: str, readable: Sequence[str], command: Sequence[str]) -> int:
    """Starts the command and collects whatever it leaves behind; all others end with it."""
    kernel.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    build(folder, readable)
    os.chdir(folder)
    if (program := os.fork()) == 0:
        guarded(lambda: os.execvp(command[0], [*command]))
    while True:
        pid, status = os.wait()
        if pid == program:
            return shell_code(status)


def guarded(work: Callable[[], int]) -> None:
    """The process ends here, whatever happens."""
    try:
        os._exit(work())
    except OSError as error:
        os.write(2, f"box: {error}\n".encode())
        os._exit(1)


def shell_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    middle = sys.argv.index("--")
    sys.exit(main(sys.argv[1], sys.argv[2:middle], sys.argv[middle + 1 :]))
