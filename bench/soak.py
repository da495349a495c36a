"""A soak: half an hour of mixed chats, kills and page watchers, after which nothing may have grown or be left over.

python bench/soak.py [--minutes 30]

Three kinds of work go on at once. `septet web` builds chats that are watched, stopped, resumed and deleted; watchers
go without a word. A program of many chats (the Python API) builds, talks, cancels and resumes. Commands are killed
in their midst and resumed. What is looked at: memory, threads, file handles and children of the two long processes,
and what all of them together leave in the temporary folder, the control groups and the table of processes.
"""

import argparse
import asyncio
import ctypes
import os
import random
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import NamedTuple

import aiohttp

from septet.domain.events import ChatEnded
from septet.sandboxes.cgroups import parents
from septet.wiring.api import Team

SCRIPTS = Path(__file__).parent.parent / "tests" / "scripts"
BUILDS = ("small", "quick", "server")
TALK = "way: group_chat\nmembers:\n- {role: writer, name: writer}\n- {role: editor, name: editor}\n"
INTERVAL = 10.0
"""Seconds between two samples."""
KEPT = 30
"""Chats that stay; older ones are deleted, as a person would."""
SUBREAPER = 36
"""prctl: orphans become children of this process, so that none escapes the count."""
GROWTH = 1.05
"""How many times the memory of the second quarter the last one may take."""
SLACK_MB = 4.0
SLACK_HANDLES = 8
"""Readers of the store, which are opened as they are needed, and kept."""
NAMESPACES = "mnt:[*]"
MAX_PREPARED = 66
"""Sandboxes keep at most 64 prepared workspaces."""
PATIENCE = 120
"""Seconds for one chat."""


class Sample(NamedTuple):
    """What a process holds. `prepared` are mount namespaces of workspaces, of which it keeps a bounded number."""

    memory: float
    handles: int
    threads: int
    children: int
    prepared: int


def model_of(script: str) -> str:
    return f"scripted:{SCRIPTS / script}.yaml"


def parent_pids() -> dict[int, int]:
    """The parent of every process that is no zombie."""
    found: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, *_ = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            if state != "Z":
                found[int(folder.name)] = int(parent)
    return found


def descendants(root: int) -> set[int]:
    table, found = parent_pids(), {root}
    while more := {pid for pid, parent in table.items() if parent in found} - found:
        found |= more
    return found - {root}


def sample(pid: int) -> Sample:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    kinds = handles(pid)
    prepared = kinds.pop(NAMESPACES, 0)
    return Sample(
        memory=pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20),
        handles=kinds.total(),
        prepared=prepared,
        threads=len(list(Path(f"/proc/{pid}/task").iterdir())),
        children=len(descendants(pid)),
    )


def handles(pid: int) -> Counter[str]:
    """What a process has open, by kind."""
    kinds: list[str] = []
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            kinds.append(re.sub(r"[0-9a-f]{8,}|[0-9]+", "*", str(handle.readlink())))
    return Counter(kinds)


def groups() -> set[str]:
    """Control groups of processes below this one, or of dead ones that were."""
    mine = {str(pid) for pid in descendants(os.getpid())} | ENDED_PIDS
    found: set[str] = set()
    for parent in parents(*(Path(f"/proc/self/{name}").read_text() for name in ("cgroup", "mountinfo"))):
        found |= {str(path) for path in parent.glob("septet-*")}
    return {path for path in found if path.rsplit("-", 2)[1] in mine}


ENDED_PIDS: set[str] = set()
"""Processes of ours that are gone."""


class Actor:
    """A process of ours; what it prints goes to a file."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        ENDED_PIDS.add(str(process.pid))

    @classmethod
    async def start(cls, world: "World", *command: str) -> "Actor":
        with world.complaints.open("ab") as stderr:
            return cls(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, *command),
                    env=world.environment,
                    cwd=world.folder,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stderr,
                    limit=1 << 24,
                )
            )

    async def line(self) -> str:
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().strip()

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        with suppress(ProcessLookupError):
            self.process.send_signal(how)
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.communicate()
        return self.process.returncode or 0


class World:
    """The folders of a soak, and how far it has come."""

    def __init__(self, folder: Path, minutes: float) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.complaints = folder / "stderr.txt"
        self.environment = {**os.environ, "SEPTET_HOME": str(self.home), "TMPDIR": str(self.temporary)}
        self.ends = monotonic() + 60 * minutes
        self.counts: dict[str, int] = {}
        self.chance = random.Random(1)

    @property
    def goes_on(self) -> bool:
        return monotonic() < self.ends

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    async def command(self, *arguments: str) -> int:
        actor = await Actor.start(self, "-m", "septet", *arguments)
        await actor.process.communicate(b"")
        return actor.process.returncode or 0


class Page:
    """`septet web`, driven as browsers do."""

    def __init__(self, world: World, actor: Actor, client: aiohttp.ClientSession, origin: str) -> None:
        self.world = world
        self.actor = actor
        self.client = client
        self.origin = origin

    @classmethod
    async def open(cls, world: World, client: aiohttp.ClientSession) -> "Page":
        model = model_of("small")
        actor = await Actor.start(world, "-m", "septet", "web", "--port", "0", "--no-open", "-m", model)
        link = await actor.line()
        origin = link.split("/?")[0]
        async with client.get(link) as answer:
            assert answer.status == 200, answer
        return cls(world, actor, client, origin)

    async def post(self, path: str, **body: object) -> dict[str, object]:
        async with self.client.post(
            f"{self.origin}{path}", json=body, headers={"Origin": self.origin}
        ) as answer:
            return await answer.json()

    async def build(self) -> None:
        """A chat from its form to its end, under the eyes of watchers of whom one goes midway."""
        model = model_of(self.world.chance.choice(BUILDS))
        begun = await self.post("/api/chats", goal="add two numbers", yes=True, model=model)
        chat = str(begun["chat"])
        stops = self.world.chance.random() < 0.3
        watchers = [self.watch(chat), self.watch(chat, leaves=True), self.watch("", leaves=True)]
        if stops:
            watchers.append(self.interrupt(chat))
        await asyncio.gather(*watchers)
        self.world.count("chats of the page")

    async def watch(self, chat: str, leaves: bool = False) -> None:
        query = f"?chat={chat}&after=0" if chat else ""
        seen = 0
        async with self.client.ws_connect(
            f"{self.origin}/api/live{query}", headers={"Origin": self.origin}, max_msg_size=0
        ) as socket:
            self.world.count("watchers")
            async for message in socket:
                seen += 1
                if leaves and seen > 5:
                    if (connection := socket.get_extra_info("socket")) is not None:
                        connection.shutdown(2)  # without a word, as a laptop that is closed
                    return
                if '"septet.chat_ended"' in str(message.data):
                    return

    async def interrupt(self, chat: str) -> None:
        await asyncio.sleep(self.world.chance.random() * 2)
        await self.post(f"/api/chats/{chat}/acts", act="stop")
        await self.watch(chat)
        await self.post(f"/api/chats/{chat}/acts", act="resume")
        self.world.count("stopped and resumed on the page")
        await self.watch(chat)


async def use_page(page: Page) -> None:
    while page.world.goes_on:
        await asyncio.wait_for(page.build(), PATIENCE)


async def kill_commands(world: World) -> None:
    """Commands that are killed in their midst, and resumed until they end."""
    number = 0
    while world.goes_on:
        number += 1
        name = f"killed-{number}"
        script = world.chance.choice((*BUILDS, "cells"))
        start = ("run", "add two numbers", "-m", model_of(script), "--yes", "-n", name)
        pair = ("-t", "pair", "--run-as", "cells") if script == "cells" else ()
        actor = await Actor.start(world, "-m", "septet", *start, *pair)
        with suppress(TimeoutError):
            await asyncio.wait_for(actor.process.wait(), 1 + 8 * world.chance.random())
        await actor.end(world.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT)))
        world.count("commands killed")
        await world.command("resume", name)
        await world.command("rm", name, "--yes")


async def delete_old(world: World) -> None:
    """Keeps the store and the folders of chats at a size, so that what grows is no chat."""
    while world.goes_on:
        await asyncio.sleep(INTERVAL)
        actor = await Actor.start(world, "-m", "septet", "list", "--json")
        listed, _ = await actor.process.communicate(b"")
        lines = [line for line in listed.decode().splitlines() if '"status":""' not in line]
        for line in lines[KEPT : KEPT + 20]:
            name = line.split('"chat":"')[1].split('"')[0]
            if not name.startswith("killed-"):
                await world.command("rm", name, "--yes")
                world.count("chats deleted")


async def build(team: Team, chance: random.Random) -> None:
    run = team.start("add two numbers", tokens=chance.random() < 0.5)
    if chance.random() < 0.3:
        await asyncio.sleep(2 * chance.random())
        await run.cancel()
        if not run.chat:
            return
        run = team.resume(run.chat)
    async for item in run:
        if isinstance(getattr(item, "event", None), ChatEnded):
            print("chat", flush=True)


async def talk(team: Team, _: random.Random) -> None:
    await team.start("write a poem together")
    print("chat", flush=True)
    await asyncio.sleep(8)


async def repeat(act: Callable[[], Awaitable[None]], working: asyncio.Event) -> None:
    while working.is_set():
        await act()


async def embed(home: Path) -> None:
    """The program of many chats. It works until a line says "rest", and goes on with the next."""
    chance, working = random.Random(2), asyncio.Event()
    file = home / "talk.yaml"
    file.write_text(TALK, encoding="utf-8")
    async with (
        Team.load("iterate", model=model_of("small"), home=home) as builders,
        Team.load(str(file), model=model_of("talk"), home=home, budget={"rounds": 4}) as talkers,
    ):
        jobs = [partial(build, builders, chance)] * 3 + [partial(talk, talkers, chance)] * 5
        while await asyncio.to_thread(sys.stdin.readline):
            working.set()
            tasks = [asyncio.ensure_future(repeat(act, working)) for act in jobs]
            await asyncio.to_thread(sys.stdin.readline)
            working.clear()
            await asyncio.gather(*tasks)
            print("rests", flush=True)


async def tell(actor: Actor, word: str) -> None:
    assert actor.process.stdin is not None
    actor.process.stdin.write(f"{word}\n".encode())
    await actor.process.stdin.drain()


async def until_rest(actor: Actor, world: World) -> None:
    while (line := await actor.line()) != "rests":
        assert line == "chat", f"the program of many chats ended: {world.complaints.read_text()[-2000:]}"
        world.count("chats of the program")


async def work(world: World, page: Page, program: Actor, taken: dict[str, list[Sample]]) -> None:
    """Everything at once until the time is over, with samples all along; then rest."""
    await tell(program, "go")
    listens = asyncio.ensure_future(until_rest(program, world))
    jobs = [use_page(page), use_page(page), kill_commands(world), delete_old(world), watch_all(world, taken)]
    await asyncio.gather(*jobs)
    await tell(program, "rest")
    await listens
    await settle(world)


async def settle(world: World) -> None:
    """One more command, which clears away what the killed ones have left; and a while for threads to end."""
    await world.command("exec", "--", "true")
    await asyncio.sleep(15)


async def watch_all(world: World, taken: dict[str, list[Sample]]) -> None:
    while world.goes_on:
        await asyncio.sleep(INTERVAL)
        for name, pid in PIDS.items():
            taken.setdefault(name, []).append(sample(pid))
        last = ", ".join(f"{name} {format_sample(samples[-1])}" for name, samples in taken.items())
        print(f"{last}; temporary {len(list(world.temporary.iterdir()))}, groups {len(groups())}", flush=True)


PIDS: dict[str, int] = {}
"""The long processes."""


def format_sample(one: Sample) -> str:
    return (
        f"{one.memory:.1f} MB {one.handles} handles {one.prepared} prepared "
        f"{one.threads} threads {one.children} children"
    )


def problems(
    taken: dict[str, list[Sample]], before: dict[str, Sample], after: dict[str, Sample]
) -> Iterator[str]:
    for name, samples in taken.items():
        quarter = max(1, len(samples) // 4)
        early = median(one.memory for one in samples[quarter : 2 * quarter] or samples)
        late = median(one.memory for one in samples[-quarter:])
        print(f"{name}: memory {early:.1f} MB in the second quarter, {late:.1f} MB in the last")
        if late > GROWTH * early + SLACK_MB:
            yield f"{name} grew from {early:.1f} to {late:.1f} MB"
    for name, pid in PIDS.items():
        print(f"{name} has open: {dict(handles(pid).most_common(12))}")
    for name, held in before.items():
        print(f"{name} at rest: before {format_sample(held)}, after {format_sample(after[name])}")
        now = after[name]
        if now.handles > held.handles + SLACK_HANDLES or now.prepared > MAX_PREPARED:
            yield f"{name} holds more handles: {held} before, {now} after"
        if now.children > held.children or now.threads > held.threads + 2:
            yield f"{name} holds more threads or processes: {held} before, {now} after"


def left_over(world: World) -> Iterator[str]:
    """What may not be there once every process of ours has ended."""
    for what, found in (
        ("processes", sorted(map(describe, descendants(os.getpid())))),
        ("temporary folders", sorted(path.name for path in world.temporary.iterdir())),
        ("control groups", sorted(groups())),
    ):
        print(f"left over: {len(found)} {what}")
        if found:
            yield f"{what} are left over: {found}"


def describe(pid: int) -> str:
    with suppress(OSError):
        return f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes().replace(bytes(1), b' ')[:120]!r}"
    return str(pid)


async def soak(folder: Path, minutes: float) -> list[str]:
    world = World(folder, 0.5)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        page = await Page.open(world, client)
        program = await Actor.start(world, __file__, "--embed", str(world.home))
        PIDS.update({"septet web": page.actor.process.pid, "program": program.process.pid})
        await work(world, page, program, {})  # each kind of work once, before anything counts
        before = {name: sample(pid) for name, pid in PIDS.items()}
        taken: dict[str, list[Sample]] = {}
        world.ends = monotonic() + 60 * minutes
        await work(world, page, program, taken)
        found = list(problems(taken, before, {name: sample(pid) for name, pid in PIDS.items()}))
        codes = [await page.actor.end(), await end_program(program)]
    await settle(world)
    print(", ".join(f"{count} {what}" for what, count in sorted(world.counts.items())))
    print(f"exit codes {codes}; complaints: {world.complaints.read_text()[-3000:] or 'none'}")
    return found + list(left_over(world))


async def end_program(program: Actor) -> int:
    """Its input ends, and so does it."""
    assert program.process.stdin is not None
    program.process.stdin.close()
    await program.process.communicate()
    return program.process.returncode or 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--embed", type=Path)
    given = parser.parse_args()
    if given.embed:
        asyncio.run(embed(given.embed))
        return
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = asyncio.run(soak(Path(folder), given.minutes))
        finally:
            for pid in PIDS.values():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
    print("\n".join(f"FAILED: {problem}" for problem in found) or "held")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
