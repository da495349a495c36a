"""smolagents: its agents want tool calls in each answer, so two members take turns with its model class; threads."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from play import LONG, SYSTEM, main
from smolagents import ChatMessage, MessageRole, OpenAIModel


def message(role, text):
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


class Client:
    def __init__(self, model):
        self.model = model
        self.threads = ThreadPoolExecutor(100)

    def _talk(self, turns):
        messages = [message(MessageRole.SYSTEM, SYSTEM), message(MessageRole.USER, "Begin.")]
        for number in range(turns):
            role = (MessageRole.ASSISTANT, MessageRole.USER)[number % 2]
            messages.append(message(role, self.model.generate(messages).content))

    def _stream(self):
        pieces = self.model.generate_stream([message(MessageRole.USER, LONG)])
        return sum(len(piece.content or "") for piece in pieces)

    async def talk(self, name, turns):
        await asyncio.get_running_loop().run_in_executor(self.threads, self._talk, turns)

    async def stream(self):
        return await asyncio.get_running_loop().run_in_executor(self.threads, self._stream)


@asynccontextmanager
async def open_client(url):
    yield Client(OpenAIModel("mock", api_base=url, api_key="k"))


if __name__ == "__main__":
    main(open_client)
