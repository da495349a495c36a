"""Bare nats-py beside `septet_chats.py`: the same messages, fenced and acknowledged, without events, states or checks.

nats_chats.py writer|editor|conductor ADDRESS CHATS TURNS

Whoever hears the server's notice that its turn is open stores one message: what it says and whose turn is next. The
conductor stores the first two messages of each chat, its start and its first turn, and hears of the ends.
"""

import asyncio
import sys
from time import perf_counter

import nats
from nats.js.api import RePublish

FENCE = "Nats-Expected-Last-Subject-Sequence"
NEXT = {"writer": "editor", "editor": "writer"}
BODY_BYTES = 588
"""What two events of ours take, an answer of 200 characters and the turn that it opens, in their envelopes."""
AT_ONCE = 200


async def store(stream, chat, turn, speaker, seen):
    headers = {FENCE: str(seen), f"{FENCE}-Subject": f"bare.log.{chat}.>"}
    body = f"{turn} ".encode().ljust(BODY_BYTES, b"x")
    return await stream.publish(f"bare.log.{chat}.{speaker}", body, headers=headers, timeout=60)


async def speak(client, name, turns):
    stream = client.jetstream()

    async def take(message):
        chat, turn = message.subject.split(".")[2], int(message.data.split()[0])
        seen = int(message.headers["Nats-Sequence"])
        await store(stream, chat, turn + 1, NEXT[name] if turn < turns else "end", seen)

    async def hear(message):
        tasks.add(task := asyncio.create_task(take(message)))
        task.add_done_callback(tasks.discard)

    tasks = set()
    await client.subscribe(f"bare.stored.*.{name}", cb=hear)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


async def conduct(client, chats, turns):
    stream, room, ended = client.jetstream(), asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(0)

    async def start(number):
        async with room:
            started = await store(stream, f"chat-{number}", 0, "start", 0)
            await store(stream, f"chat-{number}", 1, "writer", started.seq)

    async def hear(_):
        ended.release()

    await stream.add_stream(
        name="BARE", subjects=["bare.log.>"], republish=RePublish(src="bare.log.>", dest="bare.stored.>")
    )
    await client.subscribe("bare.stored.*.end", cb=hear)
    await client.flush()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    started = perf_counter()
    await asyncio.gather(*(start(number) for number in range(chats)))
    for _ in range(chats):
        await ended.acquire()
    print(f"wall {perf_counter() - started}", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print("p50 0", flush=True)


async def main():
    kind, address, chats, turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    client = await nats.connect(address)
    if kind == "conductor":
        await conduct(client, chats, turns)
    else:
        await speak(client, kind, turns)


if __name__ == "__main__":
    asyncio.run(main())
