"""A big store: writes one of many chats, and measures what people do with it.

python bench/big_store.py write FOLDER [--chats 10000] [--events 500]    a home with so many chats of so many events
python bench/big_store.py measure FOLDER                                 list, show, search, the page's list, append

The chats are copies of one that the engine made, with other words and names; times are CPU of whole commands,
or of calls inside one process.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from time import process_time, time

import anyio

from septet.domain.codec import encode_event
from septet.domain.events import PersonSpoke
from septet.domain.messages import Answer, Delta, Request
from septet.settings.home import find_home
from septet.stores.sqlite import ADD_EVENT, SET_HEAD, open_store, open_writer, transaction
from septet.web.chat_view import ChatCache
from septet.wiring.api import Team

TALK = "floor: group_chat\nmembers:\n- {role: writer, name: writer}\n- {role: editor, name: editor}\n"
MARKED = "mmarkedd"
"""The word of the model chat that every copy replaces by words of its own."""
WORDS = [
    f"{first}{second}{third}" for first in "bdfgklmnprst" for second in "aeiou" for third in "bdfgklmnprst"
]
DAY = 86400.0


class Speaker:
    async def answer(self, request: Request) -> AsyncIterator[Delta | Answer]:
        yield Answer(text=f"{MARKED} and some plain words that all of them have in common", model="speaker")


async def model_chat(folder: Path, events: int) -> list[tuple[str, int, bytes]]:
    """Kind, version and data of the events of a real chat of about this length."""
    (folder / "talk.yaml").write_text(TALK, encoding="utf-8")
    team = Team.load(
        str(folder / "talk.yaml"), model=Speaker(), home=folder / "model", budget={"rounds": events // 2 - 1}
    )
    async with team:
        run = await team.start(f"write about {MARKED}")
        async with open_store(folder / "model" / "septet.db"):
            rows = open_writer(folder / "model" / "septet.db", 10.0).execute(
                "SELECT kind, v, data FROM events WHERE chat = ? ORDER BY seq", (run.chat,)
            )
            return rows.fetchall()


def copies(
    rows: list[tuple[str, int, bytes]], chats: int
) -> Iterator[tuple[str, list[tuple[str, int, bytes]]]]:
    chance = random.Random(1)
    for number in range(chats):
        said = [
            (kind, version, data.replace(MARKED.encode(), " ".join(chance.choices(WORDS, k=12)).encode()))
            for kind, version, data in rows
        ]
        yield f"{chance.choice(WORDS)}-{number}", said


def write(folder: Path, chats: int, events: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = anyio.run(model_chat, folder, events)
    began = time() - 300 * DAY
    connection = open_writer(folder / "home" / "septet.db", 10.0)
    with transaction(connection):
        for number, (chat, said) in enumerate(copies(rows, chats)):
            start = began + 300 * DAY * number / chats
            stored = ((chat, seq, start + seq, True, *one) for seq, one in enumerate(said, start=1))
            connection.executemany(ADD_EVENT, stored)
            connection.execute(SET_HEAD, (chat, len(said), len(said), start + 1, start + len(said)))
    connection.close()
    size = (folder / "home" / "septet.db").stat().st_size
    print(f"{chats} chats, {chats * len(rows)} events, {size >> 20} MiB")


def command_cpu(folder: Path, *args: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "septet", *args],
        env={**os.environ, "SEPTET_HOME": str(folder / "home")},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


async def call_cpu(call: Callable[[], Awaitable[object]]) -> float:
    started = process_time()
    await call()
    return process_time() - started


async def measure_calls(folder: Path) -> None:
    home = find_home({"SEPTET_HOME": str(folder / "home")})
    async with open_store(home.database) as store:
        newest = (await store.chats())[0].chat
        page = ChatCache(store)
        event = PersonSpoke(text="and now something else")
        assert encode_event(event)
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "open a chat": lambda: page.state(newest),
            "append": lambda: store.append(newest, event, None),
            "the page's list, first": page.summaries,
            "the page's list, again": page.summaries,
        }
        for name, call in calls.items():
            print(f"{name:28} {1000 * await call_cpu(call):10.1f} ms CPU", flush=True)


COMMANDS = (
    ("list",),
    ("list",),
    ("show", "{chat}"),
    ("search", "plain"),
    ("search", "plain"),
    ("search", "bab"),
)


def measure(folder: Path) -> None:
    anyio.run(measure_calls, folder)
    for args in COMMANDS:
        named = [arg.format(chat=newest_chat(folder)) for arg in args]
        print(f"septet {' '.join(args):21} {1000 * command_cpu(folder, *named):10.1f} ms CPU", flush=True)


def newest_chat(folder: Path) -> str:
    connection = open_writer(folder / "home" / "septet.db", 10.0)
    return connection.execute("SELECT chat FROM chats ORDER BY changed DESC LIMIT 1").fetchone()[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=("write", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=500)
    given = parser.parse_args()
    if given.act == "write":
        write(given.folder.absolute(), given.chats, given.events)
    else:
        measure(given.folder.absolute())


if __name__ == "__main__":
    main()
