"""Runs a command and kills all its processes at the end: a program for rungs without pid namespaces.

Run as `python -I -S reaper.py COMMAND…`; exits with the command's code. SIGTERM makes it kill everything.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_CHILD_SUBREAPER, _PR_SET_PDEATHSIG = 36, 1


class Reaper:
    """A child subreaper: it adopts orphans of the command, so that no process escapes by starting a session."""

    def __init__(self) -> None:
        self.child = 0
        self.is_stopping = False

    def run(self, command: list[str]) -> int:
        if sys.platform == "linux":
            library = ctypes.CDLL(None)
            library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        signal.signal(signal.SIGTERM, self._stop)
        self.child = os.fork()
        if self.child == 0:
            _exec(command)
        if self.is_stopping:
            self._kill_descendants()
        status = self._wait_for_child()
        self._end_all()
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _stop(self, number: int, frame: object) -> None:
        self.is_stopping = True
        self._kill_descendants()

    def _wait_for_child(self) -> int:
        while True:
            pid, status = os.wait()
            if pid == self.child:
                return status

    def _end_all(self) -> None:
        """Kill and reap until no child is left: new ones can only come from those still being killed."""
        while True:
            self._kill_descendants()
            try:
                os.wait()
            except ChildProcessError:
                return

    def _kill_descendants(self) -> None:
        if sys.platform != "linux":
            _kill_group(self.child)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in _descendants(os.getpid()):
                _kill(pid, number)


def _exec(command: list[str]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _descendants(pid: int) -> list[int]:
    pids: list[int] = []
    queue = [pid]
    while queue:
        children = _children(queue.pop())
        pids += children
        queue += children
    return pids


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids += map(int, thread.read_text().split())
        except OSError:
            continue
    return pids


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        return


def reaper_command(command: list[str]) -> list[str]:
    """The command line that runs a command under this program."""
    return [sys.executable, "-I", "-S", __file__, *command]


if __name__ == "__main__":
    sys.exit(Reaper().run(sys.argv[1:]))
