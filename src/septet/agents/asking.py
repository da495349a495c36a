"""One question to a model: pieces go over the bus as they come, the whole answer comes back."""

from hashlib import sha256

import msgspec

from septet.domain.events import ModelAnswered
from septet.domain.state import Spending, State
from septet.domain.talk import Answer, Delta, Message, Request, ToolOffer
from septet.domain.teams import RoleSpec
from septet.domain.values import Value
from septet.errors import ModelFailed
from septet.ports import Bus, Model
from septet.team.forms import LONGEST_REPLY, SCHEMAS

ENCODER = msgspec.json.Encoder()


class Live(Value):
    """What watchers of a chat hear before it is in the log; `restarted` voids the text before it."""

    speaker: str
    text: str = ""
    reasoning: str = ""
    output: str = ""
    restarted: bool = False


def live_topic(chat: str) -> str:
    return f"live.{chat}"


async def ask(
    member: RoleSpec,
    model: Model,
    bus: Bus,
    state: State,
    messages: tuple[Message, ...],
    tools: tuple[ToolOffer, ...] = (),
) -> ModelAnswered:
    """The member's next answer, ready to be recorded."""
    step = state.spending.get(member.name, Spending()).answers + 1
    small = member.form == "small"
    request = Request(
        role=member.name,
        step=step,
        messages=messages,
        tools=tools,
        schema=SCHEMAS.get(member.role) if small and not tools else None,
        temperature=member.temperature,
        max_tokens=LONGEST_REPLY if small else None,
    )
    topic = live_topic(state.chat)
    async for piece in model.answer(request):
        if isinstance(piece, Answer):
            prompt = sha256(ENCODER.encode(messages)).hexdigest()
            return ModelAnswered(role=member.name, answer=piece, prompt=prompt)
        await bus.publish(topic, live(member.name, piece))
    raise ModelFailed(f"the model of the {member.name} gave no answer", "resume the chat to try again")


def live(speaker: str, piece: Delta) -> bytes:
    return ENCODER.encode(
        Live(speaker=speaker, text=piece.text, reasoning=piece.reasoning, restarted=piece.restarted)
    )
