"""What every client of `bench/compare.py` has in common; it runs in the environment of each, so it imports nothing.

A client is a context of a URL that yields two coroutines: `talk(name, turns)`, two members who take turns and know all
that was said, and `stream()`, one long answer taken piece by piece, which returns its length. Printed is one JSON
object: CPU and wall-clock seconds of the row, without imports and the first request, and peak memory.
"""

import asyncio
import json
import resource
import sys
from time import perf_counter, process_time

SYSTEM = "You write a poem together."
LONG = "a long one"
"""The server answers whoever says this with a long text."""


async def measure(open_client, row, url, count, turns):
    async with open_client(url) as client:
        if row == "first":
            await client.talk("first", 1)
            return {}
        await client.talk("warm", 2)
        wall, cpu = perf_counter(), process_time()
        length = 0
        if row == "turns":
            await client.talk("chat", turns)
        elif row == "stream":
            length = await client.stream()
        else:
            await asyncio.gather(*(client.talk(f"chat-{number}", turns) for number in range(count)))
        taken = {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "length": length}
        return {**taken, "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main(open_client):
    row, url, count, turns = sys.argv[1:5]
    print(json.dumps(asyncio.run(measure(open_client, row, url, int(count), int(turns)))))
