"""AutoGen: a RoundRobinGroupChat of two AssistantAgents."""

from contextlib import asynccontextmanager

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from play import LONG, SYSTEM, main

ABILITIES = ("vision", "function_calling", "json_output", "structured_output")
INFO = {**dict.fromkeys(ABILITIES, False), "family": "unknown"}


class Client:
    def __init__(self, model):
        self.model = model

    def team(self, turns, stream=False):
        members = [
            AssistantAgent(name, self.model, system_message=SYSTEM, model_client_stream=stream)
            for name in ("writer", "editor")
        ]
        return RoundRobinGroupChat(members, termination_condition=MaxMessageTermination(turns + 1))

    async def talk(self, name, turns):
        result = await self.team(turns).run(task="Begin.")
        assert len(result.messages) == turns + 1, result

    async def stream(self):
        length = 0
        async for item in self.team(1, stream=True).run_stream(task=LONG):
            if isinstance(item, ModelClientStreamingChunkEvent):
                length += len(item.content)
        return length


@asynccontextmanager
async def open_client(url):
    model = OpenAIChatCompletionClient(model="mock", base_url=url, api_key="k", model_info=INFO)
    yield Client(model)
    await model.close()


if __name__ == "__main__":
    main(open_client)
