"""Runs a command and leaves none of its processes alive: a program for rungs without namespaces.

Called as `python -I -S reaper.py COMMAND…`; ends as the command ends. SIGTERM makes it end everything.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_SET_CHILD_SUBREAPER, _SET_PARENT_DEATH_SIGNAL = 36, 1


class Reaper:
    """Adopts whatever its command leaves behind, so that nothing can slip away by starting a session."""

    def __init__(self) -> None:
        self.child = 0
        self.is_stopping = False

    def run(self, command: list[str]) -> int:
        if sys.platform == "linux":
            library = ctypes.CDLL(None)
            library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        signal.signal(signal.SIGTERM, self._stop)
        self.child = os.fork()
        if self.child == 0:
            _become(command)
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


def _become(command: list[str]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> list[int]:
    below: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below += map(int, thread.read_text().split())
        except OSError:
            continue
    return below


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
    """How this program is called, for the command."""
    return [sys.executable, "-I", "-S", __file__, *command]


if __name__ == "__main__":
    sys.exit(Reaper().run(sys.argv[1:]))
