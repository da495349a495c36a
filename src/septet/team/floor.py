"""Who speaks next: a floor policy is a pure function from the state to a move."""

from collections.abc import Callable

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import ChatEnded, TurnOpened
from septet.domain.state import State
from septet.domain.teams import EndReason


class Speak(Value):
    speaker: str


class End(Value):
    reason: EndReason
    detail: str = ""


Move = Speak | End


def step(state: State, move: Move) -> TurnOpened | ChatEnded:
    """The event that makes the move."""
    if isinstance(move, End):
        return ChatEnded(reason=move.reason, detail=move.detail, by=state.floor.speaker)
    name = move.speaker
    role = next((member.role for member in state.team.members if member.name == name), name)
    return TurnOpened(speaker=name, role=role if role != name else "")


Floor = Callable[[State], Move]


HELPED = 2
"""How many more tries the same code or failure gets: with an example, and with a stronger model."""


def rounds_of(state: State, member: str = "") -> int:
    """Turns of the member, or of everybody; a turn whose reply could not be used is no round."""
    if member:
        return state.floor.turn_counts.get(member, 0) - state.floor.refused_turn_counts.get(member, 0)
    return sum(state.floor.turn_counts.values()) - sum(state.floor.refused_turn_counts.values())


def until_done(done: Callable[[State], bool], floor: Floor) -> Floor:
    """End as done as soon as the evidence says so."""

    def next_move(state: State) -> Move:
        return End(reason="done", detail="every check passed") if done(state) else floor(state)

    return next_move


def at_most(turns: int | None, floor: Floor, of: str = "") -> Floor:
    """End before one round more than `turns`: of anybody, or of the speaker `of`."""

    def next_move(state: State) -> Move:
        move = floor(state)
        used = rounds_of(state, of)
        if turns is None or isinstance(move, End) or used < turns or of not in ("", move.speaker):
            return move
        return End(
            reason="bound", detail=f"{pluralize(turns, 'round')} {'is' if turns == 1 else 'are'} used up"
        )

    return next_move


def unless_refused(times: int, floor: Floor) -> Floor:
    """End when a member's replies could not be used so many times in a row."""

    def next_move(state: State) -> Move:
        refused = state.talk.refused_reply
        if refused is None or state.talk.refusals < times:
            return floor(state)
        who, why = refused.role, refused.reason.partition("\n\n")[0]
        return End(
            reason="error",
            detail=f"{pluralize(times, 'reply', 'replies')} of the {who} in a row could not be used: {why}",
        )

    return next_move


def tries(state: State) -> int:
    """How many versions in a row were the same code, or failed in the same way."""
    work = state.work
    return max(work.same_failures if work.failure else 0, work.unchanged_versions + 1)


def unless_stuck(times: int, floor: Floor) -> Floor:
    """End when the same code or the same failure comes again and again, in spite of all help."""

    def next_move(state: State) -> Move:
        work = state.work
        if tries(state) < times + HELPED:
            return floor(state)
        if work.unchanged_versions + 1 == tries(state):
            detail = f"the same code came {pluralize(tries(state), 'time')} in a row"
        else:
            detail = f"the same failure came {pluralize(work.same_failures, 'time')} in a row: {work.failure}"
        return End(reason="no_progress", detail=detail)

    return next_move


def with_help(times: int, floor: Floor) -> Floor:
    """Before the coder tries the same again: the exemplar at the `times`-th time, the person two later."""

    def next_move(state: State) -> Move:
        move = floor(state)
        speaker = None if isinstance(move, End) else state.team.member_named(move.speaker)
        if speaker is None or not speaker.writes_code or tries(state) < times:
            return move
        known = state.work.example is not None and state.work.example.failure == state.work.failure
        if state.work.failure and not known and state.team.member("exemplar"):
            return Speak(speaker="exemplar")
        asked = state.floor.versions_at_consultation == len(state.work.versions)
        at_a_loss = tries(state) >= times + HELPED and state.team.approve == "ask"
        return (
            Speak(speaker=state.team.person)
            if at_a_loss and not asked and state.team.member("proxy")
            else move
        )

    return next_move


def unless_never_pleased(times: int, floor: Floor) -> Floor:
    """End when the reviewer wants more and more of what passes every check."""

    def next_move(state: State) -> Move:
        if state.work.green_rejections < times:
            return floor(state)
        return End(
            reason="bound",
            detail=f"all checks passed, but the reviewer wanted more {pluralize(times, 'time')} in a row",
        )

    return next_move


def until_accepted(floor: Floor) -> Floor:
    """End when the person takes the work as it is."""

    def next_move(state: State) -> Move:
        return End(reason="accepted", detail="as it is") if state.work.accepted else floor(state)

    return next_move


def with_package_approval(floor: Floor) -> Floor:
    """Ask the person about packages before anything goes on."""

    def next_move(state: State) -> Move:
        waiting = state.team.packages == "ask" and bool(state.work.provisions.to_ask)
        return Speak(speaker=state.team.person) if waiting else floor(state)

    return next_move


def unless_stopped(floor: Floor) -> Floor:
    """End when the person said so."""

    def next_move(state: State) -> Move:
        return End(reason="stopped", detail="stopped by the person") if state.stop_requested else floor(state)

    return next_move


def stepwise(floor: Floor) -> Floor:
    """Ask the person before every turn that is not the person's own."""

    def next_move(state: State) -> Move:
        move = floor(state)
        person = state.team.person
        taken = sum(state.floor.turn_counts.values()) - state.floor.turn_counts.get(person, 0)
        waiting = isinstance(move, Speak) and move.speaker != person and state.floor.granted_steps <= taken
        return Speak(speaker=person) if waiting else move

    return next_move
