"""Runs `septet ARGS…` again and again, each time in a fork of a process that has imported everything.

A line of stdin is `{"args": […], "seconds": S}`: the child is killed with -9 after S seconds, if it has not ended. The
line that is answered is what the child came to: its exit code, or minus the signal.
"""

import json
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

from septet.cli.main import main

for module in ("agents.runner", "cli.run", "ways.iterate.tool_members", "wiring.delivery", "wiring.session"):
    import_module(f"septet.{module}")  # so that the children need not


def run(args: list[str], output: Path) -> int:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    null = os.open(os.devnull, os.O_RDONLY)
    sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for number, descriptor in enumerate((null, sink, sink)):
        os.dup2(descriptor, number)
    sys.argv = ["septet", *args]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def serve(output: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = run(asked["args"], output)
            finally:
                sys.stdout.flush()
                os._exit(code)
        begun = time.monotonic()
        signal.sigtimedwait({signal.SIGCHLD}, asked["seconds"])
        took = time.monotonic() - begun
        found, status = os.waitpid(child, os.WNOHANG)
        if not found:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            signal.sigtimedwait({signal.SIGCHLD}, 0)
        code = os.waitstatus_to_exitcode(status)
        told = {"code": code, "took": took, "said": output.read_text() if code > 0 else ""}
        os.write(1, json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
