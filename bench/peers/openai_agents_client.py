"""openai-agents: two Agents that take turns in one SQLiteSession."""

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, set_tracing_disabled
from openai import AsyncOpenAI
from play import LONG, SYSTEM, main

set_tracing_disabled(True)


class Client:
    def __init__(self, model, folder):
        self.folder = folder
        self.agents = [Agent(name=name, instructions=SYSTEM, model=model) for name in ("writer", "editor")]

    async def talk(self, name, turns):
        session = SQLiteSession(name, self.folder / "log.db")
        for number in range(turns):
            await Runner.run(self.agents[number % 2], "Go on.", session=session)

    async def stream(self):
        run = Runner.run_streamed(self.agents[0], LONG)
        length = 0
        async for item in run.stream_events():
            if item.type == "raw_response_event" and item.data.type == "response.output_text.delta":
                length += len(item.data.delta)
        return length


@asynccontextmanager
async def open_client(url):
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncOpenAI(base_url=url, api_key="k") as client:
            yield Client(OpenAIChatCompletionsModel("mock", client), Path(folder))


if __name__ == "__main__":
    main(open_client)
