"""Bare httpx2."""

import json
from contextlib import asynccontextmanager

import httpx2
from play import LONG, SYSTEM, main


class Client:
    def __init__(self, client, url):
        self.client = client
        self.url = f"{url}/chat/completions"

    async def answer(self, messages):
        body = {"model": "mock", "stream": True, "messages": messages}
        said, rest = [], b""
        async with self.client.stream("POST", self.url, json=body) as response:
            async for piece in response.aiter_bytes():
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
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(timeout=60, limits=limits) as client:
        yield Client(client, url)


if __name__ == "__main__":
    main(open_client)
