"""A member's thread: what it was told, what it said and what its tools answered, in the order of the log.

It is only ever added to: a request is the request before it and new messages, so that a provider's prompt cache serves
nearly all of it, and nothing that a member was told changes afterwards.
"""

from collections.abc import Sequence

from septet.domain.events import MemberBriefed, ModelAnswered, ToolAnswered, ToolCalled
from septet.domain.messages import Answer, Message, ToolCall
from septet.domain.state import State

LOST = "(not carried out: the turn was ended before)"


def member_messages(state: State, member: str) -> tuple[Message, ...]:
    """The messages of the member's next request; none before its first briefing."""
    messages: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    calls: dict[str, str] = {}
    for said in state.talk.messages:
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
            case ToolAnswered(id=number, text=text) if calls.get(number) in open_calls:
                call = open_calls.pop(calls[number])
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


def untold(messages: Sequence[Message], sections: Sequence[str]) -> list[str]:
    """The sections that no message has told word for word."""
    told = [message.text for message in messages if message.role == "user"]
    return [section for section in sections if not any(section in text for text in told)]
