"""What the log costs: folding long chats, appending durably, publishing deltas.

Run: python bench/fold.py

Folding must be linear: the cost per event may not grow with the length of the chat. Appends are shown
beside the floor of the same run: bare sqlite3 with the same table, file and durability.
"""

import gc
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import anyio

from septet.domain.codec import FORMAT, encode_event, kind_of
from septet.domain.events import (
    ChatStarted,
    Event,
    EvidenceFound,
    ModelAnswered,
    Recorded,
    ReviewGiven,
    RunFinished,
    RunStarted,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileRef
from septet.domain.messages import Answer, Usage
from septet.domain.plans import TestsPass
from septet.domain.reduce import fold
from septet.domain.runs import RunResult
from septet.domain.teams import TeamSpec
from septet.ports import EventStore
from septet.runtime.bus import MemoryBus
from septet.stores.sqlite import ADD_EVENT, SET_HEAD, open_store, open_writer

SIZES = (3_000, 10_000, 30_000)
ROUNDS = 5
ONE_BY_ONE = 500
CHATS, TURNS = 200, 20
DELTAS = 100_000


def iteration(number: int) -> Iterator[Event]:
    """What one round of the iterating team writes."""
    tree, run = f"tree-{number}", f"run-{number}"
    answer = Answer(text="x" * 200, usage=Usage(prompt=500, completion=50), cost=0.001, seconds=1.0)
    yield TurnOpened(speaker="coder")
    yield ModelAnswered(role="coder", answer=answer)
    yield VersionWritten(number=number, files=(FileRef(path="main.py", sha256="ab" * 32, size=9),), tree=tree)
    yield TurnOpened(speaker="runner")
    yield RunStarted(id=run, purpose="tests", command="pytest", tree=tree)
    result = RunResult(exit_code=1, stdout="x" * 200, seconds=1.0)
    yield RunFinished(id=run, purpose="tests", command="pytest", tree=tree, result=result)
    for item in ("P1", "P2", "P3"):
        check = TestsPass(target="tests")
        yield EvidenceFound(item=item, check=check, passed=False, detail="1 failed", tree=tree)
    yield TurnOpened(speaker="reviewer")
    yield ModelAnswered(role="reviewer", answer=answer)
    yield ReviewGiven(version=number, tree=tree, verdict="revise")


def chat_events() -> Iterator[Event]:
    yield ChatStarted(goal="a long chat", team=TeamSpec(name="iterate", members=()), workspace="")
    number = 0
    while True:
        number += 1
        yield from iteration(number)


def chat_log(length: int) -> list[Recorded]:
    events = enumerate(islice(chat_events(), length), start=1)
    return [Recorded(chat="long", seq=seq, at=float(seq), event=event) for seq, event in events]


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """CPU seconds of the quickest of some rounds: other work on the machine only ever adds."""
    return min(timed(work) for _ in range(rounds))


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    started = process_time()
    work()
    return process_time() - started


def bench_folding() -> None:
    print("folding                 events    CPU ms   µs/event")
    costs: list[float] = []
    for size in SIZES:
        log = chat_log(size)
        seconds = best(lambda log=log: fold(log))
        costs.append(seconds / size * 1e6)
        print(f"{'':20}{size:>10,}{seconds * 1e3:>10.1f}{costs[-1]:>11.2f}")
    ratio = costs[-1] / costs[0]
    print(
        f"per event, {SIZES[-1]:,} cost {ratio:.2f} times as much as {SIZES[0]:,} (linear 1, quadratic 10)\n"
    )
    if ratio > 2:
        sys.exit("folding is not linear")


def bare_append(connection: sqlite3.Connection, chat: str, seq: int) -> None:
    event = TurnOpened(speaker="coder")
    connection.execute(ADD_EVENT, (chat, seq, 0.0, True, kind_of(event), FORMAT, encode_event(event)))
    connection.execute(SET_HEAD, (chat, seq, seq, 0.0, 0.0))


def bare_one_by_one(connection: sqlite3.Connection) -> None:
    for seq in range(1, ONE_BY_ONE + 1):
        connection.execute("BEGIN IMMEDIATE")
        bare_append(connection, "one by one", seq)
        connection.execute("COMMIT")


def bare_grouped(connection: sqlite3.Connection) -> None:
    for seq in range(1, TURNS + 1):
        connection.execute("BEGIN IMMEDIATE")
        for chat in range(CHATS):
            bare_append(connection, f"chat-{chat}", seq)
        connection.execute("COMMIT")


async def conduct(store: EventStore, chat: str, turns: int) -> None:
    seen = 0
    for _ in range(turns):
        seen = (await store.append(chat, TurnOpened(speaker="coder"), seen))[-1].seq


async def many_chats(store: EventStore) -> None:
    async with anyio.create_task_group() as group:
        for chat in range(CHATS):
            group.start_soon(conduct, store, f"chat-{chat}", TURNS)


def show_rate(name: str, appends: int, wall: float, cpu: float) -> None:
    print(f"{name:40}{appends / wall:>12,.0f}{cpu / appends * 1e6:>12.1f}")


def bench_bare(folder: Path) -> None:
    connection = open_writer(folder / "bare.db", 10.0)
    for name, work, appends in (
        ("bare sqlite3, one by one", bare_one_by_one, ONE_BY_ONE),
        ("bare sqlite3, grouped", bare_grouped, CHATS * TURNS),
    ):
        wall, cpu = perf_counter(), process_time()
        work(connection)
        show_rate(name, appends, perf_counter() - wall, process_time() - cpu)
    connection.close()


async def bench_store(folder: Path) -> None:
    async with open_store(folder / "store.db") as store:
        for name, work, appends in (
            (
                "SQLite store, awaited one by one",
                partial(conduct, store, "one by one", ONE_BY_ONE),
                ONE_BY_ONE,
            ),
            (f"SQLite store, {CHATS} chats at once", partial(many_chats, store), CHATS * TURNS),
        ):
            wall, cpu = perf_counter(), process_time()
            await work()
            show_rate(name, appends, perf_counter() - wall, process_time() - cpu)
        await bench_resume(store)


async def bench_resume(store: EventStore) -> None:
    log = chat_log(1000)

    async def append_all() -> None:
        for recorded in log:
            await store.append("resumed", recorded.event, after=None)

    await append_all()
    wall = perf_counter()
    state = fold(await store.read("resumed"))
    print(f"\nresume of a chat of {state.seq:,} events: {(perf_counter() - wall) * 1e3:.1f} ms\n")


async def bench_bus() -> None:
    bus, message = MemoryBus(), b"a token"
    async with bus.subscribe("live") as messages:
        cpu = process_time()
        for _ in range(DELTAS):
            await bus.publish("live", message)
        published = process_time() - cpu
        for _ in range(DELTAS):
            await anext(messages)
        heard = process_time() - cpu - published
    print(
        f"memory bus, one subscriber: {published / DELTAS * 1e6:.2f} µs to publish, "
        f"{heard / DELTAS * 1e6:.2f} µs to hear"
    )


def main() -> None:
    bench_folding()
    print(f"{'appends, synchronous=FULL':40}{'appends/s':>12}{'CPU µs each':>12}")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        bench_bare(Path(folder))
        anyio.run(bench_store, Path(folder))
    anyio.run(bench_bus)


if __name__ == "__main__":
    main()
