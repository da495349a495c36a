"""CPU of starting: bare Python, click, asyncio, and commands with 1,000 chats in the store, interleaved in one run.

Run: python bench/startup.py [--times 15]

Bars on an idle machine: --help 60 ms, list and show 120 ms. What starts is compiled already, as after an installation:
the bytecode is kept in a folder of the run, whatever the environment says of it.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from big_store import newest_chat, write

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import click": ["-c", "import click"],
    "import asyncio": ["-c", "import asyncio"],
    "septet --help": ["-m", "septet", "--help"],
    "septet run --help": ["-m", "septet", "run", "--help"],
    "septet list": ["-m", "septet", "list"],
    "septet show": ["-m", "septet", "show", "CHAT"],
    "septet search": ["-m", "septet", "search", "plain"],
}


def cpu(args: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of CPU, user and system, that one start takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def measure(folder: Path, times: int) -> None:
    write(folder, 1000, 50)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"SEPTET_HOME": str(folder / "home"), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    chat = newest_chat(folder)
    commands = {name: [chat if arg == "CHAT" else arg for arg in args] for name, args in COMMANDS.items()}
    for args in commands.values():
        cpu(args, environment)  # writes the bytecode and the indices
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(times):
        for name, args in commands.items():
            taken[name].append(cpu(args, environment))
    bare = taken["python -c pass"]
    print(f"{'':20} median of {times}, ms CPU    least   × python -c pass")
    for name, found in taken.items():
        ratio = statistics.median(one / floor for one, floor in zip(found, bare, strict=True))
        print(f"{name:20} {statistics.median(found):20.0f} {min(found):12.0f} {ratio:12.1f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given.times)


if __name__ == "__main__":
    main()
