"""A Septet team as an agent of AutoGen: a chat whose turns are the agent's answers."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    TextMessage,
    ThoughtEvent,
)
from autogen_core import CancellationToken
from autogen_core.models import RequestUsage

from septet.agents.ask import Live
from septet.domain.events import Recorded
from septet.domain.state import State
from septet.protocols.conversation import TurnText, outcome_text, question_text, usage_between
from septet.team.questions import Question
from septet.wiring.api import Item, Run, Team

NOTHING = "Nothing has been asked for yet: say what to build."


class TeamAgentState(TypedDict):
    chat: str


class TeamAgent(BaseChatAgent):
    """The first message is the goal; each later one answers the team's question, or is an instruction.

    An answer is the team's next question (with `ask`) or how the work ended, with the evidence. The `team` must be
    open while the agent is used. Its chat is in the log: what is cancelled goes on with the next message, and a
    `chat` that has a name given to it also in the next process, if this one is killed.
    """

    component_type = "agent"

    def __init__(
        self,
        name: str,
        team: Team,
        *,
        description: str = "A team that builds programs and proves that they work.",
        workspace: str | Path | None = None,
        ask: bool = False,
        chat: str = "",
    ) -> None:
        super().__init__(name, description)
        self._team = team
        self._workspace = workspace
        self._ask = ask
        self.chat = chat
        """The name of its chat; without one, it gets one with the first message."""

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        inner: list[BaseAgentEvent | BaseChatMessage] = []
        async for item in self.on_messages_stream(messages, cancellation_token):
            if isinstance(item, Response):
                return Response(chat_message=item.chat_message, inner_messages=inner)
            if not isinstance(item, ModelClientStreamingChunkEvent):
                inner.append(item)
        raise RuntimeError("the stream ended without a response")

    async def on_messages_stream(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> AsyncGenerator[BaseAgentEvent | BaseChatMessage | Response, None]:
        text = words_of(messages)
        before = await self._team.session.state(self.chat) if self.chat else State()
        if not text and not before.seq:
            yield Response(chat_message=TextMessage(content=NOTHING, source=self.name))
            return
        run = self._begin(text, before)
        cancellation_token.add_callback(run.abort)
        turn, asked = TurnText(before), None
        try:
            async for item in run:
                self.chat = run.chat
                if isinstance(item, Question):
                    asked = item
                    break
                if event := self._event(item, turn):
                    yield event
        finally:
            await run.cancel()
        after = await self._team.session.state(self.chat)
        usage = usage_between(before, after)
        said = TextMessage(
            content=question_text(asked) if asked else outcome_text(after),
            source=self.name,
            models_usage=RequestUsage(usage.prompt, usage.completion),
        )
        yield Response(chat_message=said)

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """The next message begins another chat; the old one stays in the log."""
        self.chat = ""

    async def save_state(self) -> Mapping[str, object]:
        return TeamAgentState(chat=self.chat)

    async def load_state(self, state: Mapping[str, object]) -> None:
        self.chat = str(state["chat"])

    def _begin(self, text: str, before: State) -> Run:
        if before.seq:
            return self._team.resume(self.chat, text, tokens=True, ask=self._ask)
        return self._team.start(text, workspace=self._workspace, name=self.chat, tokens=True, ask=self._ask)

    def _event(self, item: Item, turn: TurnText) -> BaseAgentEvent | None:
        """What is written now, or what has happened."""
        if isinstance(item, Live):
            written = item.text
            return ModelClientStreamingChunkEvent(content=written, source=self.name) if written else None
        happened = turn.add(item).strip() if isinstance(item, Recorded) else ""
        return ThoughtEvent(content=happened, source=self.name) if happened else None


def words_of(messages: Sequence[BaseChatMessage]) -> str:
    """One message as it is; of several, who said each."""
    if len(messages) == 1:
        return messages[0].to_model_text()
    return "\n\n".join(f"{one.source}: {one.to_model_text()}" for one in messages)
