"""The group chat: decides who speaks next, and builds the messages for a speaker."""

from collections.abc import Sequence

from septet.domain.events import ModelAnswered, PersonSpoke, RunFinished
from septet.domain.messages import Message
from septet.domain.state import State
from septet.domain.teams import Budget, RoleSpec, TeamSpec
from septet.team.briefing import run_section
from septet.team.floor import End, Floor, Move, Speak, at_most, rounds_of, unless_stuck
from septet.team.graph import edges_of, graph, is_graph, speaker_choices, speakers_of
from septet.ways.prompts import prompt_text

LONGEST_TALK = 60_000
"""Characters of the newest messages in a prompt; the task is always included."""


def talk_floor(team: TeamSpec, budget: Budget) -> Floor:
    """The floor policy: by the team's graph if it has one, else round robin."""
    if not is_graph(team):
        return in_turn(team, budget)
    manager = team.member("manager")
    floor = unless_stuck(team.stuck_after, graph(edges_of(team), manager.name if manager else ""))
    return at_most(budget.rounds, floor) if manager else for_rounds(team, budget, floor)


def in_turn(team: TeamSpec, budget: Budget) -> Floor:
    """Round robin: speaker i mod n has the i-th turn, and there are exactly as many turns as rounds."""
    speakers = speakers_of(team)

    def floor(state: State) -> Move:
        return Speak(speaker=speakers[turns_taken(state, speakers) % len(speakers)].name)

    return for_rounds(team, budget, floor)


def for_rounds(team: TeamSpec, budget: Budget, floor: Floor) -> Floor:
    """End a talk that no member ends after as many turns as there are rounds."""
    speakers = speakers_of(team)

    def next_move(state: State) -> Move:
        if budget.rounds is not None and turns_taken(state, speakers) >= budget.rounds:
            return End(reason="rounds", detail=rounds_text(budget.rounds))
        return floor(state)

    return next_move


def turns_taken(state: State, speakers: Sequence[RoleSpec]) -> int:
    return sum(rounds_of(state, member.name) for member in speakers)


def turns_spoken(state: State) -> int:
    """Count the rounds: turns of members who talk or, with a manager, turns of any member."""
    led = is_graph(state.team) and state.team.member("manager") is not None
    return rounds_of(state) if led else turns_taken(state, speakers_of(state.team))


def rounds_text(rounds: int) -> str:
    return f"all {rounds} rounds were spoken" if rounds > 1 else "the one round was spoken"


def talk_briefing(member: RoleSpec, state: State) -> tuple[Message, ...]:
    """The member's role prompt, the task and the conversation; messages of others start with their names."""
    others = ", ".join(one.name for one in speakers_of(state.team) if one.name != member.name)
    part = f"You are the {member.name} in a group chat with {others or 'a person'}."
    rules = management(member, state) if member.role == "manager" else ""
    system = Message(role="system", text="\n\n".join(filter(None, [member.instructions, part, rules])))
    messages = [Message(role="user", text=f"user: {state.goal}"), *recent_messages(member, state)]
    if refused := state.talk.refusal_of(member.name):
        reason = f"Your last message could not be used: {refused.reason}"
        messages.append(Message(role="user", text=reason))
    return (system, *merge_messages(messages))


def management(member: RoleSpec, state: State) -> str:
    """The manager's instructions for giving the floor."""
    members = [one for one in speakers_of(state.team) if one.name != member.name]
    lines = [f"- {one.name}, the {one.role}{member_description(one)}" for one in members]
    names = ", ".join(speaker_choices(edges_of(state.team), member.name, state))
    return prompt_text("septet.ways.group_chat", "manager").format(members="\n".join(lines), names=names)


def member_description(member: RoleSpec) -> str:
    first = next(iter(member.instructions.strip().splitlines()), "")
    return f": {first[:200]}" if first else ""


def recent_messages(member: RoleSpec, state: State) -> list[Message]:
    """The newest messages that fit, in order."""
    messages: list[Message] = []
    room = LONGEST_TALK
    for one in reversed(list(state.talk.messages)):
        if not isinstance(one, ModelAnswered | PersonSpoke | RunFinished) or is_unusable(one):
            continue
        mine = isinstance(one, ModelAnswered) and one.role == member.name
        name, text = speaker_and_words(one)
        room -= len(text)
        if room < 0 and messages:
            break
        messages.append(
            Message(role="assistant" if mine else "user", text=text if mine else f"{name}: {text}")
        )
    return messages[::-1]


def speaker_and_words(one: ModelAnswered | PersonSpoke | RunFinished) -> tuple[str, str]:
    """A message with its speaker's name, as other members see it."""
    match one:
        case ModelAnswered(role=role, answer=answer):
            return role, answer.text
        case PersonSpoke(text=text):
            return "user", text
        case RunFinished():
            return "runner", run_section(one)


def is_unusable(one: ModelAnswered | PersonSpoke | RunFinished) -> bool:
    """Whether the answer has no text, or calls a tool, which no member here has."""
    return isinstance(one, ModelAnswered) and (
        bool(one.answer.calls) or not one.answer.text or one.answer.text.isspace()
    )


def merge_messages(messages: list[Message]) -> list[Message]:
    """Join consecutive messages of others into one, because providers require alternating roles."""
    joined: list[Message] = []
    for one in messages:
        if joined and joined[-1].role == one.role:
            joined[-1] = Message(role=one.role, text=f"{joined[-1].text}\n\n{one.text}")
        else:
            joined.append(one)
    return joined


def last_words(state: State) -> str:
    """The result of a finished talk: the manager's summary, or the newest message of the first speaker."""
    if state.floor.termination is not None:
        return state.floor.termination.summary
    first = speakers_of(state.team)[0].name
    said = [one for one in state.talk.messages if isinstance(one, ModelAnswered) and one.role == first]
    return next((one.answer.text for one in reversed(said) if not is_unusable(one)), "")
