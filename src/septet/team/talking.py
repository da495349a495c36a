"""A group chat of members who talk in turn: whose turn it is, and what a speaker knows before it speaks."""

from septet.domain.events import ModelAnswered, PersonSpoke
from septet.domain.state import State
from septet.domain.talk import Message
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.team.limits import rounds_of
from septet.team.moves import End, Floor, Move, Speak

LONGEST_TALK = 60_000
"""Characters of the newest messages that a speaker is shown; the task is always shown."""


def speakers_of(team: TeamSpec) -> list[RoleSpec]:
    """Everybody but the person, who may say something at any time and is never asked."""
    return [member for member in team.members if member.role != "proxy"]


def talking(team: TeamSpec, budget: Budget) -> Floor:
    """Round robin: the i-th turn is that of speaker i mod n, and exactly as many turns open as there are rounds."""
    speakers = speakers_of(team)

    def floor(state: State) -> Move:
        taken = sum(rounds_of(state, member.name) for member in speakers)
        if budget.rounds is not None and taken >= budget.rounds:
            return End(reason="rounds", detail=spoken(budget.rounds))
        return Speak(speaker=speakers[taken % len(speakers)].name)

    return floor


def spoken(rounds: int) -> str:
    return f"all {rounds} rounds were spoken" if rounds > 1 else "the one round was spoken"


def talk_briefing(member: RoleSpec, state: State) -> tuple[Message, ...]:
    """The member's part, the task, and all that was said: its own words as its own, the others' with their names."""
    others = ", ".join(one.name for one in speakers_of(state.team) if one.name != member.name)
    part = f"You are the {member.name} in a group chat with {others or 'a person'}."
    system = Message(role="system", text="\n\n".join(filter(None, [member.instructions, part])))
    messages = [Message(role="user", text=f"user: {state.goal}"), *said(member, state)]
    if state.refused is not None and state.refused.role == member.name:
        reason = f"Your last message could not be used: {state.refused.reason}"
        messages.append(Message(role="user", text=reason))
    return (system, *merged(messages))


def said(member: RoleSpec, state: State) -> list[Message]:
    """The newest messages that there is room for, in order."""
    messages: list[Message] = []
    room = LONGEST_TALK
    for one in reversed(list(state.messages)):
        if not isinstance(one, ModelAnswered | PersonSpoke) or is_unusable(one):
            continue
        mine = isinstance(one, ModelAnswered) and one.role == member.name
        text = one.text if isinstance(one, PersonSpoke) else one.answer.text
        name = "user" if isinstance(one, PersonSpoke) else one.role
        room -= len(text)
        if room < 0 and messages:
            break
        messages.append(
            Message(role="assistant" if mine else "user", text=text if mine else f"{name}: {text}")
        )
    return messages[::-1]


def is_unusable(one: ModelAnswered | PersonSpoke) -> bool:
    """Nothing was said in it: it is empty, or calls a tool, which nobody here has."""
    return isinstance(one, ModelAnswered) and (bool(one.answer.calls) or not one.answer.text.strip())


def merged(messages: list[Message]) -> list[Message]:
    """Providers want turns that alternate: what several others said in a row is one message."""
    joined: list[Message] = []
    for one in messages:
        if joined and joined[-1].role == one.role:
            joined[-1] = Message(role=one.role, text=f"{joined[-1].text}\n\n{one.text}")
        else:
            joined.append(one)
    return joined


def last_words(state: State) -> str:
    """What a finished talk has come to: the newest words of whoever speaks first in it."""
    first = speakers_of(state.team)[0].name
    said = [one for one in state.messages if isinstance(one, ModelAnswered) and one.role == first]
    return next((one.answer.text for one in reversed(said) if not is_unusable(one)), "")
