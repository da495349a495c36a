"""Challenges of wrong checks: the coder challenges a check, the planner or the person decides."""

import re
from collections.abc import Iterable

from msgspec.structs import replace

from septet.domain.events import ChallengeDecided, CheckChallenged
from septet.domain.plans import (
    Challenge,
    Judged,
    Plan,
    Refusal,
    Requirement,
    Wish,
    check_text,
    is_held,
    parse_check,
)
from septet.domain.state import State
from septet.team.evidence import author_of, evidence_report
from septet.team.floor import End, Floor, Move, Speak

CHALLENGE = re.compile(
    r"^\W*(?P<item>P\d+)\W+check(?: is)? wrong\b\W*(?:because\b\W*)?(?P<reason>.*?)"
    r"(?:(?:[;,.:]\s*|\n\s*)instead\b(?! of)[:,]?\s*(?P<instead>\S.*?))?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
DECISION = re.compile(
    r"^\W*(?P<item>P\d+)\W+check (?P<word>stands|(?:is )?wrong)\b\W*(?:because\b\W*)?(?P<reason>.*?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
PROTECTED_AUTHORS = ("person", "repository")
"""Authors whose checks the planner may not change unless the person agrees."""


def read_challenge(state: State, by: str, text: str) -> CheckChallenged | Refusal | None:
    """Parse the challenge in a reply: one per turn, about a requirement of the plan, with a reason."""
    said = CHALLENGE.search(text)
    if said is None:
        return None
    item = said["item"].upper()
    if all(one.id != item for one in state.plan.items):
        return Refusal(reason=f"the plan has no {item}")
    if not said["reason"].strip():
        return Refusal(reason=f"say why: '{item}: check wrong, because …; instead …'")
    return CheckChallenged(by=by, item=item, reason=said["reason"].strip(), instead=said["instead"] or "")


def unrecorded_challenge(state: State) -> CheckChallenged | None:
    """The challenge that the open turn's member wrote beside its files; None if there is none, or it is recorded.

    One that the planner has decided is not opened again by a member that goes on working.
    """
    turn = state.floor.turn
    if turn is None or open_challenge(state):
        return None
    known = {one.item for one in state.plan.challenges}
    said = [read_challenge(state, turn.speaker, beside_files(one.answer.text)) for one in turn.answers]
    found = [one for one in said if isinstance(one, CheckChallenged) and one.item not in known]
    return found[-1] if found else None


def challenge_refusal(state: State, text: str) -> Refusal | None:
    """Why the challenge in a reply with files cannot be used; None if it can, or there is none."""
    said = read_challenge(state, "coder", beside_files(text))
    return said if isinstance(said, Refusal) else None


def beside_files(text: str) -> str:
    """The reply without its blocks: what a file says is no challenge."""
    return FENCED.sub("", text)


def parse_challenge_decision(state: State, by: str, text: str) -> ChallengeDecided | None:
    """Parse the planner's decision about the open challenge; None if the reply is a plan, or does not decide."""
    challenge = open_challenge(state)
    said = [one for one in DECISION.finditer(text) if challenge and one["item"].upper() == challenge.item]
    if challenge is None or not said:
        return None
    stands = said[0]["word"].lower() == "stands"
    return ChallengeDecided(by=by, item=challenge.item, stands=stands, reason=said[0]["reason"].strip())


def plan_with_other_check(state: State, text: str) -> Plan | Refusal | None:
    """The plan with the check that the planner puts in the place of the challenged one; None if it names none."""
    challenge, plan = open_challenge(state), state.plan.current
    said = [one for one in CHALLENGE.finditer(text) if challenge and one["item"].upper() == challenge.item]
    if challenge is None or plan is None or not said or not said[0]["instead"]:
        return None
    check = parse_check(said[0]["instead"])
    if isinstance(check, Refusal):
        return check
    items = [replace(item, check=check) if item.id == challenge.item else item for item in plan.items]
    return replace(plan, items=tuple(items))


def amendment_refusal(state: State, plan: Plan) -> Refusal | None:
    """Why this plan cannot replace the approved one; None if it can."""
    if not state.plan.approved:
        return None
    why = weakened_check(state, plan) if state.team.approve == "auto" else ""
    return Refusal(reason=why) if why else None


def check_texts(items: Iterable[Requirement]) -> set[str]:
    return {check_text(item.check) for item in items}


def weakened_check(state: State, plan: Plan) -> str:
    """Say which approved check the plan weakens, since nobody reviews it: only a challenged check may change."""
    challenge, after = open_challenge(state), check_texts(plan.items)
    lost = [item for item in state.plan.items if check_text(item.check) not in after]
    for item in lost:
        if (
            challenge is None
            or challenge.item != item.id
            or author_of(state, item.check) in PROTECTED_AUTHORS
        ):
            return f"{item.id}: '{check_text(item.check)}' was approved; leave it as it is"
    machine = [item for item in plan.items if not isinstance(item.check, Judged)]
    kept = [item for item in state.plan.items if not isinstance(item.check, Judged)]
    return "another check that a machine can do is needed in its place" if len(machine) < len(kept) else ""


def unplanned_wishes(state: State) -> list[Wish]:
    """Wishes with a version that the planner has not seen: the plan may need a check for them.

    Empty for a planner that uses the short form, which cannot express it.
    """
    planner = state.team.member("planner")
    if planner is None or planner.form == "small":
        return []
    return [wish for wish in state.plan.wishes if wish.version and not wish.planned]


def open_challenge(state: State) -> Challenge | None:
    return next((one for one in state.plan.challenges if one.stands is None), None)


def unresolved(state: State) -> list[Challenge]:
    """Challenges of requirements that the newest version does not meet, whether decided or not."""
    met = {line.item.id for line in evidence_report(state) if line.is_met}
    return [one for one in state.plan.challenges if one.item not in met]


def challenge_texts(state: State, challenges: list[Challenge]) -> str:
    """Both views of each challenge, one line per challenge."""
    checks = {
        item.id: "held back" if is_held(item.check) else check_text(item.check) for item in state.plan.items
    }
    return "; ".join(
        f"{one.item} ({checks.get(one.item, '')}): the {one.by} says that it is wrong, {one.reason}"
        + (f", instead {one.instead}" if one.instead else "")
        + (
            f"; the {one.decided_by} says that it {'stands' if one.stands else 'is wrong'}, {one.answer}"
            if one.answer
            else ""
        )
        for one in challenges
    )


def with_challenges(floor: Floor) -> Floor:
    """Let the planner decide about a challenged check; end as challenged instead of any other end without success."""

    def next_move(state: State) -> Move:
        if challenge := open_challenge(state):
            if challenge.times > 1:  # a challenge repeated after the decision is for the person
                return End(reason="challenged", detail=challenge_texts(state, [challenge]))
            return Speak(speaker="planner")
        if agreed := [one for one in unresolved(state) if one.stands is False]:
            return End(reason="challenged", detail=challenge_texts(state, agreed))
        move = floor(state)
        failed = isinstance(move, End) and move.reason in ("bound", "no_progress", "error")
        if failed and (still := unresolved(state)):
            return End(reason="challenged", detail=challenge_texts(state, still))
        return move

    return next_move


def challenge_section(state: State) -> list[str]:
    """Ask the planner to decide about the open challenge."""
    challenge = open_challenge(state)
    if challenge is None:
        return []
    item = challenge.item
    ask = (
        f"Reply with `{item}: check stands, because …`, with `{item}: check wrong, because …; instead CHECK` (it takes "
        "its place), or with the whole plan in which that check is another one. The goal decides."
    )
    return [f"# The coder says that a check is wrong\n{challenge_texts(state, [challenge])}\n{ask}"]


def challenge_decisions_section(state: State) -> list[str]:
    """The decisions about the coder's challenges."""
    said = [one for one in state.plan.challenges if one.stands is not None]
    return [f"# Checks that you challenged\n{challenge_texts(state, said)}"] if said else []
