"""Asks a model: publishes pieces on the bus as they arrive, and returns the complete answer."""

from hashlib import sha256

import msgspec
from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.events import ModelAnswered
from septet.domain.messages import Answer, Delta, Message, Request, ToolOffer
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import ModelFailed, Overdrawn
from septet.ports import Bus, Model
from septet.team.budgets import cost_limit_for, exceeded_budget, expected_spending, spent_before

ENCODER = msgspec.json.Encoder()


class Live(Value):
    """Live text for watchers, before it is in the log; `restarted` discards the text before it."""

    speaker: str
    text: str = ""
    reasoning: str = ""
    output: str = ""
    restarted: bool = False


def live_topic(chat: str) -> str:
    return f"live.{chat}"


async def ask_model(
    member: RoleSpec,
    model: Model,
    bus: Bus,
    state: State,
    messages: tuple[Message, ...],
    tools: tuple[ToolOffer, ...] = (),
) -> ModelAnswered:
    """Get the member's next answer as an event. Raises Overdrawn if it would exceed a budget."""
    return await send_request(request_of(member, state, messages, tools), member, model, bus, state)


async def send_request(
    request: Request, member: RoleSpec, model: Model, bus: Bus, state: State
) -> ModelAnswered:
    if why := exceeded_budget(
        state, state.budget, member.name, expected_spending(state, member.name, request)
    ):
        raise Overdrawn(why)
    topic = live_topic(state.chat)
    answer: Answer | None = None
    # To its end: the event loop would start a task to close a stream that is left before.
    async for piece in model.answer(request):
        if isinstance(piece, Answer):
            answer = piece
        else:
            await bus.publish(topic, live(member.name, piece), member.name)
    if answer is None:
        raise ModelFailed(f"the model of the {member.name} gave no answer", "resume the chat to try again")
    prompt = sha256(ENCODER.encode(request.messages)).hexdigest()
    return ModelAnswered(role=member.name, answer=answer, prompt=prompt)


def request_of(
    member: RoleSpec, state: State, messages: tuple[Message, ...], tools: tuple[ToolOffer, ...] = ()
) -> Request:
    request = Request(
        role=member.name,
        step=spent_before(state, member.name).answers + 1,
        messages=messages,
        tools=tools,
        temperature=member.temperature,
        max_tokens=member.max_tokens,
        timeout=member.timeout,
        purse=cost_limit_for(state, member.name),
        price=state.budget.price,
        thread=f"{state.chat}.{member.name}",
    )
    return in_small_form(request, member) if member.form == "small" else request


def in_small_form(request: Request, member: RoleSpec) -> Request:
    """With the schema of the role's short answers, and a limit on their length."""
    from septet.team.small_form import MAX_REPLY_TOKENS, SCHEMAS

    schema = None if request.tools else SCHEMAS.get(member.role)
    return replace(request, schema=schema, max_tokens=request.max_tokens or MAX_REPLY_TOKENS)


def live(speaker: str, piece: Delta) -> bytes:
    return ENCODER.encode(
        Live(speaker=speaker, text=piece.text, reasoning=piece.reasoning, restarted=piece.restarted)
    )
