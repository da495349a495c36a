"""pydantic-ai: two Agents that hand each other the history."""

from contextlib import asynccontextmanager

from openai import AsyncOpenAI
from play import LONG, SYSTEM, main
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Client:
    def __init__(self, model):
        self.agents = [Agent(model, name=name, instructions=SYSTEM) for name in ("writer", "editor")]

    async def talk(self, name, turns):
        history = []
        for number in range(turns):
            result = await self.agents[number % 2].run("Go on.", message_history=history)
            history = result.all_messages()

    async def stream(self):
        async with self.agents[0].run_stream(LONG) as run:
            return sum([len(piece) async for piece in run.stream_text(delta=True, debounce_by=None)])


@asynccontextmanager
async def open_client(url):
    async with AsyncOpenAI(base_url=url, api_key="k") as client:
        yield Client(OpenAIChatModel("mock", provider=OpenAIProvider(openai_client=client)))


if __name__ == "__main__":
    main(open_client)
