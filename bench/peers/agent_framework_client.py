"""agent-framework: two Agents that hand each other the history (its group chat ends after 100 steps)."""

from contextlib import asynccontextmanager

from agent_framework import Agent, Message
from agent_framework.openai import OpenAIChatCompletionClient
from play import LONG, SYSTEM, main


class Client:
    def __init__(self, model):
        self.model = model

    def agents(self):
        return [Agent(self.model, SYSTEM, name=name) for name in ("writer", "editor")]

    async def talk(self, name, turns):
        agents = self.agents()
        messages = [Message("user", ["Begin."])]
        for number in range(turns):
            answer = await agents[number % 2].run(messages)
            messages.append(Message("user", [answer.text]))

    async def stream(self):
        return sum([len(piece.text) async for piece in self.agents()[0].run(LONG, stream=True)])


@asynccontextmanager
async def open_client(url):
    yield Client(OpenAIChatCompletionClient("mock", base_url=url, api_key="k"))


if __name__ == "__main__":
    main(open_client)
