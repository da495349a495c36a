"""Chooses one of several programs: it meets the goal's examples and agrees with most of the others. Pure.

Evidence has an order. Examples that the goal states come first; then agreement with the other programs on more
inputs, where inputs near the examples count more; then votes: examples that a model invented, which rank programs
but exclude none. The first of equals wins.
"""

import ast
from collections.abc import Sequence
from typing import cast

from septet.common.values import Value

FAR_WEIGHT = 0.25
"""The weight of agreement on a far input; it is 1 on a near one. Correct programs may differ on far inputs."""
MAX_OUTCOME_LENGTH = 120


class Outcomes(Value):
    """The behaviour of a program: which stated examples and votes it meets, and the outcome of each probe.

    An outcome is `v:` and a value in normal form, `e:` and an error's type, or `t:` after a timeout.
    """

    checks: tuple[bool, ...] = ()
    votes: tuple[bool, ...] = ()
    probes: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    """The actual results of stated examples that are not met."""

    @property
    def met(self) -> int:
        return sum(self.checks)


class ProgramChoice(Value):
    """The index of the chosen program, and the evidence for it."""

    place: int
    met: bool
    """Whether it meets every stated example."""
    peers: int
    """How many programs meet as many examples, this one included: those that were compared."""
    alike: int
    """How many of these, this one included, behave the same on every near probe."""
    rivals: int
    """How many of the others behave the same as each other: the largest group that behaves otherwise."""
    support: float
    """The mean agreement with the others over all probes: 0 to 1."""


REFUSALS = ("e:ValueError", "e:TypeError")
"""How a program says that an input is none for it."""


def is_value(outcome: str) -> bool:
    return outcome.startswith("v:")


def undisputed(programs: Sequence[Outcomes], near: Sequence[bool]) -> list[bool]:
    """Which probes no program refuses that gives values elsewhere: whether the others are asked for, nobody said.

    Of `to_roman(0)` a goal without examples says nothing. A program that fails everywhere refuses nothing.
    """
    closest = [place for place, close in enumerate(near) if close]
    working = [
        one for one in programs if 2 * sum(is_value(one.probes[place]) for place in closest) > len(closest)
    ]
    return [all(one.probes[place] not in REFUSALS for one in working) for place in range(len(near))]


def agreement(one: Outcomes, other: Outcomes, weights: Sequence[float]) -> float:
    """The weighted share of equal values, among the probes for which at least one program returns a value."""
    total = same = 0.0
    for mine, theirs, weight in zip(one.probes, other.probes, weights, strict=True):
        if is_value(mine) or is_value(theirs):
            total += weight
            same += weight * (mine == theirs)
    return same / total if total else 0.0


def behaves_alike(one: Outcomes, other: Outcomes, near: Sequence[bool]) -> bool:
    """Whether at least one near probe gives a value, and none gives different outcomes."""
    pairs = [(a, b) for a, b, close in zip(one.probes, other.probes, near, strict=True) if close]
    telling = [(a, b) for a, b in pairs if is_value(a) or is_value(b)]
    return bool(telling) and all(a == b for a, b in telling)


def choose(
    programs: Sequence[Outcomes], near: Sequence[bool], *, by_group: bool = False
) -> ProgramChoice | None:
    """Choose, of the programs that meet the most examples, the one that agrees best with the others.

    `by_group`: one of the largest group that behaves alike. Where no example sorts wrong programs out, one in the
    middle agrees with many of them on most calls, and with none on all.
    """
    if not programs:
        return None
    most = max(one.met for one in programs)
    rivals = [place for place, one in enumerate(programs) if one.met == most]
    weights = [1.0 if close else FAR_WEIGHT for close in near]

    def support(place: int) -> float:
        others = [other for other in rivals if other != place]
        shares = [agreement(programs[place], programs[other], weights) for other in others]
        return round(sum(shares) / max(1, len(others)), 9)

    supports = {place: support(place) for place in rivals}
    groups = {place: group_size(place, rivals, programs, near) if by_group else 0 for place in rivals}
    best = max(rivals, key=lambda place: (groups[place], supports[place], sum(programs[place].votes), -place))
    chosen = programs[best]
    others = [one for one in rivals if one != best and not behaves_alike(chosen, programs[one], near)]
    return ProgramChoice(
        place=best,
        met=all(chosen.checks),
        peers=len(rivals),
        alike=len(rivals) - len(others),
        rivals=max((group_size(one, others, programs, near) for one in others), default=0),
        support=supports[best],
    )


def group_size(place: int, among: Sequence[int], programs: Sequence[Outcomes], near: Sequence[bool]) -> int:
    """How many of them, this one included, behave as this one does."""
    return sum(one == place or behaves_alike(programs[place], programs[one], near) for one in among)


ALIKE = 3
"""Fewer programs that behave alike are never believed."""
FEWEST_DRAWS, MOST_DRAWS = 8, 16
"""Of a chat. Replayed over real draws, agreement of four programs that meet an example says less than that of eight.

Where the goal states no example, nothing sorts wrong programs out before they are compared: so many hardly ever agree.
"""
NEARLY_ALL = 0.995
"""The mean agreement that is believed when all are drawn: a stray program no longer speaks against the others."""
MAJORITY = 0.5
TIMES_THE_NEXT = 4
"""The share that must behave alike then, where no example sorts wrong programs out before, and how many times the next
group it must be: errors differ from each other, a goal that can be understood in two ways gives two large groups."""


def is_believed(choice: ProgramChoice, drawn: int, has_examples: bool) -> bool:
    """Whether the chosen program is taken for right: it meets every stated example, and enough others agree with it."""
    if not choice.met or choice.alike < ALIKE or (has_examples and drawn < FEWEST_DRAWS):
        return False
    if drawn < MOST_DRAWS:
        return choice.support >= 1
    if has_examples:
        return choice.support >= NEARLY_ALL
    return choice.alike >= max(MAJORITY * choice.peers, TIMES_THE_NEXT * choice.rivals)


def believed_votes(programs: Sequence[Outcomes], chosen: Outcomes) -> list[int]:
    """The votes met by the chosen program and by at least half of the others that meet as many examples."""
    rivals = [one for one in programs if one.met == chosen.met]
    counts = [sum(one.votes[place] for one in rivals) for place in range(len(chosen.votes))]
    return [place for place, held in enumerate(chosen.votes) if held and 2 * counts[place] >= len(rivals)]


MOST_AGREED = 4


def agreed_examples(
    calls: Sequence[str], programs: Sequence[Outcomes], chosen: Outcomes, near: Sequence[bool]
) -> list[str]:
    """A few near calls with different plain results, on which all programs that meet as many examples agree."""
    rivals = [one for one in programs if one.met == chosen.met]
    found: dict[str, str] = {}
    for place, call in enumerate(calls):
        outcome = chosen.probes[place]
        if near[place] and all(one.probes[place] == outcome for one in rivals) and is_plain(outcome):
            found.setdefault(outcome, f"{call} == {outcome.removeprefix('v:')}")
    return list(found.values())[:MOST_AGREED]


def is_plain(outcome: str) -> bool:
    """Whether an outcome's normal form is its literal too: true of whole numbers, texts and lists of them."""
    if not is_value(outcome) or "(" in outcome:  # in normal form, a tuple of one item looks like the item
        return False
    try:
        return is_plain_value(ast.literal_eval(outcome.removeprefix("v:")))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def is_plain_value(value: object) -> bool:
    return isinstance(value, bool | int | str) or (
        isinstance(value, list) and all(map(is_plain_value, cast("list[object]", value)))
    )


def rival_question(
    calls: Sequence[str], programs: Sequence[Outcomes], choice: ProgramChoice, near: Sequence[bool]
) -> str:
    """Describe a call for which the chosen program and its strongest rival return different values."""
    rival = strongest_rival(programs, choice, near)
    call = simplest_dispute(calls, programs[choice.place], rival, [True] * len(calls)) if rival else ""
    if rival is None or not call:
        return ""
    place = calls.index(call)
    values = (
        one.probes[place].removeprefix("v:")[:MAX_OUTCOME_LENGTH] for one in (programs[choice.place], rival)
    )
    return "{} gives {} here and {} elsewhere".format(call, *values)


def disputed_call(
    calls: Sequence[str], programs: Sequence[Outcomes], choice: ProgramChoice, near: Sequence[bool]
) -> str:
    """The simplest near call for which the chosen program and its strongest rival return different values."""
    rival = strongest_rival(programs, choice, near)
    return simplest_dispute(calls, programs[choice.place], rival, near) if rival else ""


def strongest_rival(
    programs: Sequence[Outcomes], choice: ProgramChoice, near: Sequence[bool]
) -> Outcomes | None:
    """One of the largest group that meets as many examples as the chosen program, and behaves otherwise."""
    mine = programs[choice.place]
    others = [one for one in programs if one.met == mine.met and not behaves_alike(mine, one, near)]
    return max(others, key=lambda one: sum(behaves_alike(one, other, near) for other in others), default=None)


def simplest_dispute(calls: Sequence[str], one: Outcomes, other: Outcomes, near: Sequence[bool]) -> str:
    found = [
        call
        for call, here, there, close in zip(calls, one.probes, other.probes, near, strict=True)
        if close and here != there and is_value(here) and is_value(there)
    ]
    return min(found, key=len, default="")
