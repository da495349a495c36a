"""The openai SDK: `chat.completions.create`."""

from contextlib import asynccontextmanager

from openai import AsyncOpenAI
from play import LONG, SYSTEM, main


class Client:
    def __init__(self, client):
        self.client = client

    async def talk(self, name, turns):
        messages = [{"role": "system", "content": SYSTEM}]
        for _ in range(turns):
            answer = await self.client.chat.completions.create(model="mock", messages=messages)
            messages.append({"role": "user", "content": answer.choices[0].message.content})

    async def stream(self):
        messages = [{"role": "user", "content": LONG}]
        pieces = await self.client.chat.completions.create(model="mock", messages=messages, stream=True)
        return sum([len(piece.choices[0].delta.content or "") async for piece in pieces if piece.choices])


@asynccontextmanager
async def open_client(url):
    async with AsyncOpenAI(base_url=url, api_key="k") as client:
        yield Client(client)


if __name__ == "__main__":
    main(open_client)
