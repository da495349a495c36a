"""Who speaks next: a floor policy is a pure function from the state to a move."""

from collections.abc import Callable

from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import ChatEnded, TurnOpened
from septet.domain.state import State
from septet.domain.teams import EndReason
from septet.team.evidence import is_only_judged


class Speak(Value):
    """`next` is who speaks if the person, who is asked first, lets the chat continue."""

    speaker: str
    next: str = ""


class End(Value):
    reason: EndReason
    detail: str = ""


Move = Speak | End


def step(state: State, move: Move) -> TurnOpened | ChatEnded:
    """The event that records the move."""
    if isinstance(move, End):
        return ChatEnded(reason=move.reason, detail=move.detail, by=state.floor.speaker)
    name = move.speaker
    role = next((member.role for member in state.team.members if member.name == name), name)
    return TurnOpened(speaker=name, role=role if role != name else "", next=move.next)


Floor = Callable[[State], Move]


EXTRA_TRIES = 2
"""Extra tries after the same code or failure: one with an example, one with a stronger model."""


def rounds_of(state: State, member: str = "") -> int:
    """Count the turns of the member, or of all members; turns whose reply was refused do not count."""
    if member:
        return state.floor.turn_counts.get(member, 0) - state.floor.refused_turn_counts.get(member, 0)
    return sum(state.floor.turn_counts.values()) - sum(state.floor.refused_turn_counts.values())


def until_done(done: Callable[[State], bool], floor: Floor) -> Floor:
    """End as done as soon as `done` says so; as a claim, if only the reviewer's judgement says so."""

    def next_move(state: State) -> Move:
        if not done(state):
            return floor(state)
        if is_only_judged(state):
            return End(reason="claimed", detail="the reviewer accepts it, and no check shows it")
        return End(reason="done", detail="every check passed")

    return next_move


def at_most(turns: int | None, floor: Floor, of: str = "") -> Floor:
    """End when `turns` rounds are used up: rounds of all members, or of the speaker `of`."""

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
    """End when so many replies in a row were refused."""

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


def repeated_tries(state: State) -> int:
    """Count the newest versions in a row that are the same code, or fail in the same way."""
    work = state.work
    return max(work.same_failures if work.failure else 0, work.unchanged_versions + 1)


def unless_stuck(times: int, floor: Floor) -> Floor:
    """End when the same code or the same failure is repeated `times` and two extra times with help."""

    def next_move(state: State) -> Move:
        work = state.work
        if repeated_tries(state) < times + EXTRA_TRIES:
            return floor(state)
        if work.unchanged_versions + 1 == repeated_tries(state):
            detail = f"the same code came {pluralize(repeated_tries(state), 'time')} in a row"
        else:
            detail = f"the same failure came {pluralize(work.same_failures, 'time')} in a row: {work.failure}"
        return End(reason="no_progress", detail=detail)

    return next_move


def with_help(times: int, floor: Floor) -> Floor:
    """Give the floor to the exemplar after `times` repetitions by the coder, and to the person after two more."""

    def next_move(state: State) -> Move:
        move = floor(state)
        speaker = None if isinstance(move, End) else state.team.member_named(move.speaker)
        if speaker is None or not speaker.writes_code or repeated_tries(state) < times:
            return move
        known = state.work.example is not None and state.work.example.failure == state.work.failure
        if state.work.failure and not known and state.team.member("exemplar"):
            return Speak(speaker="exemplar")
        asked = state.floor.versions_at_consultation == len(state.work.versions)
        at_a_loss = repeated_tries(state) >= times + EXTRA_TRIES and state.team.approve == "ask"
        return (
            Speak(speaker=state.team.person)
            if at_a_loss and not asked and state.team.member("proxy")
            else move
        )

    return next_move


def unless_never_pleased(times: int, floor: Floor) -> Floor:
    """End when the reviewer rejected so many versions in a row that passed every check."""

    def next_move(state: State) -> Move:
        if state.work.green_rejections < times:
            return floor(state)
        return End(
            reason="bound",
            detail=f"all checks passed, but the reviewer wanted more {pluralize(times, 'time')} in a row",
        )

    return next_move


def until_accepted(floor: Floor) -> Floor:
    """End when the person accepts the work as it is."""

    def next_move(state: State) -> Move:
        return End(reason="accepted", detail="as it is") if state.work.accepted else floor(state)

    return next_move


def with_package_approval(floor: Floor) -> Floor:
    """Give the floor to the person first if packages wait for approval."""

    def next_move(state: State) -> Move:
        waiting = state.team.packages == "ask" and bool(state.work.provisions.to_ask)
        return Speak(speaker=state.team.person) if waiting else floor(state)

    return next_move


def unless_stopped(floor: Floor) -> Floor:
    """End when the person asked for it."""

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
        return Speak(speaker=person, next=move.speaker) if isinstance(move, Speak) and waiting else move

    return next_move
