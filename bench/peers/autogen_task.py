"""One task done by AutoGen's coder and executor in a round robin; runs in an environment of its own.

For `bench/outcome.py`: reads the goal from stdin, works in the current folder, prints what the coder said.
"""

import asyncio
import os
import sys

from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ModelFamily
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from autogen_ext.models.openai import OpenAIChatCompletionClient

SYSTEM = """You write Python. Put the whole program and a few asserts that try it into one Python code block; it is
run and you are shown what it prints. Mend what fails. When it works, repeat the final program in a code block and say
TERMINATE."""
ROUNDS = 6


async def main() -> None:
    abilities = {"vision": False, "function_calling": False, "json_output": False, "structured_output": False}
    client = OpenAIChatCompletionClient(
        model=os.environ["MODEL"],
        base_url=os.environ["URL"],
        api_key="none",
        model_info={**abilities, "family": ModelFamily.UNKNOWN},
    )
    coder = AssistantAgent("coder", client, system_message=SYSTEM)
    async with LocalCommandLineCodeExecutor(work_dir=".", timeout=20) as executor:
        runner = CodeExecutorAgent("runner", executor, sources=["coder"])
        ends = TextMentionTermination("TERMINATE", sources=["coder"]) | MaxMessageTermination(2 * ROUNDS)
        team = RoundRobinGroupChat([coder, runner], termination_condition=ends)
        async for message in team.run_stream(task=sys.stdin.read()):
            if getattr(message, "source", "") == "coder":
                print(getattr(message, "content", ""), flush=True)
    await client.close()


asyncio.run(main())
