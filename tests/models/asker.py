"""A process that asks models and tells what came of it and how much memory it took: for answers that are too much."""

import json
import sys
from pathlib import Path

import anyio

from septet.domain.messages import Message, Request
from septet.models.credentials import bearer
from septet.models.faults import Fault
from septet.models.http import HttpClient
from septet.models.providers.anthropic import AnthropicModel
from septet.models.providers.openai import OpenAIModel
from septet.ports import Model

LONGEST = 1 << 20
QUESTION = Request(role="coder", step=1, messages=(Message(role="user", text="go"),))


def opened(kind: str, url: str, wire: HttpClient) -> Model:
    if kind == "pydantic-ai":
        import os

        from septet.models.providers.pydantic_ai_model import open_pydantic_ai

        os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="sk-test")
        return open_pydantic_ai("openai-chat:mock", wire)
    if kind == "anthropic":
        return AnthropicModel(f"{url}/messages", "mock", bearer(""), wire)
    return OpenAIModel(f"{url}/chat/completions", "mock", bearer(""), wire)


async def told(kind: str, url: str) -> str:
    async with HttpClient(max_answer_bytes=LONGEST) as wire:
        try:
            async for _ in opened(kind, url, wire).answer(QUESTION):
                pass
        except Fault as fault:
            return f"{type(fault).__name__}: {fault.cause}"
        return "an answer"


def peak_memory() -> int:
    """MiB. The kernel's figure for children counts what their parent had when it forked; this one begins anew."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


async def main() -> None:
    kind, *urls = sys.argv[1:]
    found = [await told(kind, url) for url in urls]
    peak = peak_memory()
    sys.stdout.write(json.dumps({"found": found, "peak": peak}))


if __name__ == "__main__":
    anyio.run(main)
