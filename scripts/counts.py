"""Counts what fixed runs take: a guard that needs no quiet machine, because it looks at no clock.

python scripts/counts.py           print the counts beside those that are kept
python scripts/counts.py --check   fail where a count has grown by more than a tenth
python scripts/counts.py --write   keep the counts of today; the commit says why they grew

Each run is a process of its own. An audit hook counts the files that it opens, the processes that it starts and what
its SQLite connections execute; a profiler counts the calls of functions of the package.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from time import time
from types import FrameType

ROOT = Path(__file__).absolute().parent.parent
KEPT = ROOT / "scripts" / "counts.json"
PACKAGE = str(ROOT / "src" / "septet")
GROWTH = 1.1
SLACK = 3
"""By how much a small count may grow."""
ROUNDS, CHATS = 20, 20
TALK = """floor: group_chat
members:
- {role: writer, name: writer}
- {role: editor, name: editor}
"""
SPAWNS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty")
CODE = (".py", ".pyc", ".so", ".zip")

Counts = dict[str, int]


class Census:
    """Counts what this process does until `close`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._untraced: list[object] = []
        """Connections that are not ready for a callback when the hook is told of them, but are when they execute."""
        self._loaded = len(sys.modules)
        sys.addaudithook(self._hear)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def close(self) -> Counts:
        sys.setprofile(None)
        threading.setprofile(None)
        return {**self.counts, "modules": len(sys.modules) - self._loaded}

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in SPAWNS:
            self.counts["processes"] += 1
        elif event == "open":
            self.counts["files opened"] += is_counted(arguments[0], arguments[2])
        elif event == "socket.connect":
            self.counts["connections"] += 1
        elif event == "sqlite3.connect/handle":
            self._untraced.append(arguments[0])

    def _trace(self, statement: str) -> None:
        self.counts["transactions" if statement == "COMMIT" else "statements"] += 1

    def _profile(self, frame: FrameType, event: str, function: object) -> None:
        if self._untraced and event == "c_call" and getattr(function, "__name__", "") == "execute":
            self._follow(getattr(function, "__self__", None))
        elif event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.counts["calls"] += "testing" not in frame.f_code.co_filename

    def _follow(self, connection: object) -> None:
        from sqlite3 import Connection

        if isinstance(connection, Connection) and connection in self._untraced:
            self._untraced.remove(connection)
            connection.set_trace_callback(self._trace)


def is_counted(path: object, flags: object) -> bool:
    """Whether it is a file whose number is the same everywhere.

    Code is cached, folders are looked at again and again while a program runs, and each system has other files.
    """
    if isinstance(path, int) or (isinstance(flags, int) and flags & os.O_DIRECTORY):
        return False
    name = path.decode(errors="replace") if isinstance(path, bytes) else str(path)
    elsewhere = name.startswith(("/proc/", "/sys/", "/etc/")) or "__pycache__" in name or ".dist-info" in name
    return not elsewhere and not name.endswith(CODE)


def talk() -> Counts:
    """A chat of two members with a model behind HTTP."""
    from septet.testing.server import serve_mock
    from septet.wiring.api import Team

    started = time()

    async def run() -> Counts:
        async with serve_mock() as server:
            model = f"url:{server.url}#mock"
            async with Team.load("talk.yaml", model=model, budget={"rounds": ROUNDS}) as team:
                await team.start("write a poem", name="poem")
        return {"requests": len(server.seen), "request bytes": sum(len(one.body) for one in server.seen)}

    return {**asyncio.run(run()), **count_log(started)}


def chats() -> Counts:
    """Chats at once in one process."""
    from septet.testing.server import serve_mock
    from septet.wiring.api import Team

    started = time()

    async def run() -> None:
        async with serve_mock() as server:
            model = f"url:{server.url}#mock"
            async with Team.load("talk.yaml", model=model, budget={"rounds": 3}) as team:
                await asyncio.gather(*(team.start(f"write poem {number}") for number in range(CHATS)))

    asyncio.run(run())
    return count_log(started)


def build() -> Counts:
    """A program with its tests and review, in the sandbox."""
    from septet.wiring.api import Team

    started = time()
    result = Team.run_sync("add two numbers", model=f"scripted:{ROOT / 'tests' / 'scripts' / 'small.yaml'}")
    assert result.status == "done", result
    return count_log(started)


def count_log(since: float) -> Counts:
    """The events of this run."""
    import sqlite3

    with sqlite3.connect(Path(os.environ["SEPTET_HOME"]) / "septet.db") as connection:
        totals = "SELECT count(*), sum(length(data)) FROM events WHERE at >= ?"
        events, size = connection.execute(totals, (since,)).fetchone()
    return {"events": events, "event bytes": size}


def command(*arguments: str) -> Callable[[], Counts]:
    """`septet ARGUMENTS`, on what the runs before it have left."""

    def run() -> Counts:
        sys.argv[1:] = arguments
        from septet.cli.main import main

        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
        else:
            code = 0
        if code:
            sys.exit(code)
        return {}

    return run


def load() -> Counts:
    import_module("septet")
    return {}


RUNS: Mapping[str, Callable[[], Counts]] = {
    "import septet": load,
    "septet --help": command("--help"),
    "a talk": talk,
    "chats at once": chats,
    "a build": build,
    "septet list, first": command("list"),
    "septet list": command("list"),
    "septet show": command("show", "poem"),
}
"""In this order, in one home: the later ones read what the earlier ones have written."""
BATCHED = ("chats at once", "transactions")
"""How many chats share a transaction depends on the machine; the log's statements do not."""


def count(name: str, plant: str = "") -> Counts:
    """Run it here and now; `plant` is a module to import first."""
    sys.stdout, printed = open(os.devnull, "w", encoding="utf-8"), sys.stdout  # noqa: SIM115, PTH123  # until the end
    census = Census()
    if plant:
        import_module(plant)
    found = RUNS[name]()
    counts = {**found, **census.close()}
    sys.stdout = printed
    return {what: number for what, number in sorted(counts.items()) if (name, what) != BATCHED}


def count_all(names: tuple[str, ...] = tuple(RUNS), plant: Path | None = None) -> dict[str, Counts]:
    """Every run in a process of its own; `plant` is a Python file that each imports first."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "talk.yaml").write_text(TALK, encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "SEPTET_HOME": f"{folder}/home",
            "SEPTET_SANDBOX": "bubblewrap",
            "PYTHONPATH": str(plant.parent) if plant else "",
        }
        planted = ["--plant", plant.stem] if plant else []
        return {
            name: json.loads(
                subprocess.run(
                    [sys.executable, __file__, "--count", name, *planted],
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    check=True,
                ).stdout
            )
            for name in names
        }


def grown(kept: Mapping[str, Counts], counted: Mapping[str, Counts]) -> Iterator[str]:
    """The counts that have grown by more than a tenth, each with its figures."""
    for name, counts in counted.items():
        for what, number in counts.items():
            before = kept.get(name, {}).get(what, 0)
            if number > max(before * GROWTH, before + SLACK):
                yield f"{name}: {what}: {number}, kept: {before}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--count", metavar="RUN")
    parser.add_argument("--plant", metavar="MODULE", default="")
    given = parser.parse_args()
    if given.count:
        print(json.dumps(count(given.count, given.plant)))
        return 0
    counted = count_all()
    if given.write:
        KEPT.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
        return 0
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    for name, counts in counted.items():
        print(name)
        for what, number in counts.items():
            print(f"  {what:14} {number:8}   kept {kept.get(name, {}).get(what, 0):8}")
    wrong = list(grown(kept, counted))
    print(*wrong, sep="\n")
    return 1 if given.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
