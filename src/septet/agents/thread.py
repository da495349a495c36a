"""A member's thread: what it was told, what it said and what its tools answered, in the order of the log.

It is only ever added to: a request is the request before it and new messages, so that a provider's prompt cache serves
nearly all of it. Once in a while, where that costs less than to tell all of it again and again, what tools answered
long ago is shortened to a line; what the member was told of its task, and what it said, never is.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from septet.domain.events import MemberBriefed, ModelAnswered, ToolAnswered, ToolCalled
from septet.domain.messages import Answer, Message, ToolCall
from septet.domain.state import State

SHORT = 400
"""Characters of an answer of a tool that stay as they are."""
ANSWERS_BETWEEN = 10
"""A new beginning of the thread comes at most every so many answers of the member."""
LEAST_SAVED = 24_000
"""Characters; less is not worth it."""
CACHED_PRICE = 0.1
"""Of what a token costs, where it comes from a service's cache."""
SHORTENED = (
    "What tools answered until here is told in a line each from now on. Call again what you need of it."
)
LOST = "(not carried out: the turn was ended before)"


def member_messages(state: State, member: str) -> tuple[Message, ...]:
    """The messages of the member's next request; none before its first briefing."""
    messages: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    calls: dict[str, str] = {}
    shortened = shortened_before(state, member)
    for place, said in enumerate(state.talk.messages):
        match said:
            case MemberBriefed(member=name, system=system) if name == member:
                messages += [*lost_answers(open_calls), *([system_message(system)] if system else [])]
                messages.append(Message(role="user", text=said.text, images=said.images))
            case ModelAnswered(role=name, answer=answer) if name == member and messages:
                messages += lost_answers(open_calls)
                messages.append(assistant_message(answer))
                open_calls = {call.id: call for call in answer.calls}
            case ToolCalled(id=number, by=name, call=call) if name == member:
                calls[number] = call
            case ToolAnswered(id=number) if calls.get(number) in open_calls:
                call = open_calls.pop(calls[number])
                text = short_text(said) if place < shortened else said.text
                messages.append(Message(role="tool", text=text, call=call.id))
            case _:
                continue
    return tuple(messages)


def assistant_message(answer: Answer) -> Message:
    """What the member said; reasoning goes with the calls that it led to."""
    replay = answer.replay if answer.calls else ""
    return Message(role="assistant", text=answer.text, calls=answer.calls, replay=replay)


def system_message(text: str) -> Message:
    return Message(role="system", text=text)


def lost_answers(calls: dict[str, ToolCall]) -> list[Message]:
    """Every call needs an answer before anything else is said, also one that nobody carried out."""
    lost = [Message(role="tool", text=LOST, call=call) for call in calls]
    calls.clear()
    return lost


def shortened_before(state: State, member: str) -> int:
    """The place in the log before which answers of tools are told in a line."""
    marks = [
        place
        for place, said in enumerate(state.talk.messages)
        if isinstance(said, MemberBriefed) and said.member == member and said.shortens
    ]
    return marks[-1] if marks else 0


def short_text(answered: ToolAnswered) -> str:
    """What is left of an answer: its line for people, or its first words."""
    if len(answered.text) <= SHORT:
        return answered.text
    line = answered.summary or answered.text[: SHORT // 2].split("\n")[0]
    return f"({line}; the rest of {len(answered.text)} characters is left out, call again what you need)"


def should_shorten(state: State, member: str) -> bool:
    """Whether less would be told, by so much that a new beginning of the thread pays.

    What a service has in its cache costs a tenth. After a new beginning all that stays is read once for the whole
    price; then each request is shorter.
    """
    since = state.talk.messages[shortened_before(state, member) :]
    given = [said.answer for said in since if isinstance(said, ModelAnswered) and said.role == member]
    if len(given) < ANSWERS_BETWEEN:
        return False
    mark = MemberBriefed(member=member, text=SHORTENED, shortens=True)
    after = replace(state, talk=replace(state.talk, messages=state.talk.messages.plus(mark)))
    now, rest = (text_length(member_messages(one, member)) for one in (state, after))
    usage = given[-1].usage
    cached = usage.cached / usage.prompt if usage.prompt else 0.0
    saved, lost = (now - rest) * (1 - cached * (1 - CACHED_PRICE)), rest * cached * (1 - CACHED_PRICE)
    return now - rest >= LEAST_SAVED and saved * ANSWERS_BETWEEN > lost


def text_length(messages: Sequence[Message]) -> int:
    return sum(len(message.text) for message in messages)


def untold(messages: Sequence[Message], sections: Sequence[str]) -> list[str]:
    """The sections that no message has told word for word."""
    told = [message.text for message in messages if message.role == "user"]
    return [section for section in sections if not any(section in text for text in told)]
