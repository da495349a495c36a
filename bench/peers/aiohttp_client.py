"""The floor: bare aiohttp."""

import json
from contextlib import asynccontextmanager

import aiohttp
from play import LONG, SYSTEM, main


class Client:
    def __init__(self, session, url):
        self.session = session
        self.url = f"{url}/chat/completions"

    async def answer(self, messages):
        body = {"model": "mock", "stream": True, "messages": messages}
        said, rest = [], b""
        async with self.session.post(self.url, json=body) as response:
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n\n")
                for line in lines:
                    if line != b"data: [DONE]":
                        choices = json.loads(line[6:])["choices"]
                        said.append(choices[0]["delta"].get("content") or "" if choices else "")
        return "".join(said)

    async def talk(self, name, turns):
        messages = [{"role": "system", "content": SYSTEM}]
        for _ in range(turns):
            messages.append({"role": "user", "content": await self.answer(messages)})

    async def stream(self):
        return len(await self.answer([{"role": "user", "content": LONG}]))


@asynccontextmanager
async def open_client(url):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        yield Client(session, url)


if __name__ == "__main__":
    main(open_client)
