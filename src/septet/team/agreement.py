"""Which of several programs: those that meet the goal's examples, then those that agree with most others. Pure.

Evidence is ordered. Examples that the goal states are trusted and come first; then agreement with the other programs
on more inputs, near the examples before far from them; then votes: examples that a model invented, which rank
programs and veto none. The first of equals wins.
"""

from collections.abc import Sequence

from septet.common.values import Value

FAR_WEIGHT = 0.25
"""What agreement on a far input counts, against 1 on a near one: right programs may differ there."""
LONGEST_OUTCOME = 120


class Outcomes(Value):
    """What a program did: which stated examples and votes it meets, and what came of each probe.

    An outcome is `v:` and a value in normal form, `e:` and an error's type, or `t:` where the time was up.
    """

    checks: tuple[bool, ...] = ()
    votes: tuple[bool, ...] = ()
    probes: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    """What came instead where a stated example is not met."""

    @property
    def met(self) -> int:
        return sum(self.checks)


class ProgramChoice(Value):
    """The place of the chosen program, and what speaks for it."""

    place: int
    met: bool
    """Whether it meets every stated example."""
    peers: int
    """How many programs were compared, itself among them: those that meet as many examples."""
    alike: int
    """How many of them, itself among them, behave like it on every near probe."""
    support: float
    """How far the others agree with it, over all probes: 0 to 1."""


def is_value(outcome: str) -> bool:
    return outcome.startswith("v:")


def agreement(one: Outcomes, other: Outcomes, weights: Sequence[float]) -> float:
    """The weighted share of probes on which both return the same, of those on which one returns something."""
    total = same = 0.0
    for mine, theirs, weight in zip(one.probes, other.probes, weights, strict=True):
        if is_value(mine) or is_value(theirs):
            total += weight
            same += weight * (mine == theirs)
    return same / total if total else 0.0


def behaves_alike(one: Outcomes, other: Outcomes, near: Sequence[bool]) -> bool:
    """No near probe tells them apart, and there is one that could."""
    pairs = [(a, b) for a, b, close in zip(one.probes, other.probes, near, strict=True) if close]
    telling = [(a, b) for a, b in pairs if is_value(a) or is_value(b)]
    return bool(telling) and all(a == b for a, b in telling)


def choose(programs: Sequence[Outcomes], near: Sequence[bool]) -> ProgramChoice | None:
    """The program that meets the most examples and, among those, agrees best with the others."""
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
    best = max(rivals, key=lambda place: (supports[place], sum(programs[place].votes), -place))
    chosen = programs[best]
    return ProgramChoice(
        place=best,
        met=all(chosen.checks),
        peers=len(rivals),
        alike=sum(one == best or behaves_alike(chosen, programs[one], near) for one in rivals),
        support=supports[best],
    )


def believed_votes(programs: Sequence[Outcomes], chosen: Outcomes) -> list[int]:
    """The votes that the chosen program meets and at least half of the others that meet as many examples."""
    rivals = [one for one in programs if one.met == chosen.met]
    counts = [sum(one.votes[place] for one in rivals) for place in range(len(chosen.votes))]
    return [place for place, held in enumerate(chosen.votes) if held and 2 * counts[place] >= len(rivals)]


def rival_question(
    calls: Sequence[str], programs: Sequence[Outcomes], choice: ProgramChoice, near: Sequence[bool]
) -> str:
    """The first call on which the chosen program and its strongest rival give different values, in words."""
    mine = programs[choice.place]
    others = [one for one in programs if one.met == mine.met and not behaves_alike(mine, one, near)]
    if not others:
        return ""
    rival = max(others, key=lambda one: sum(behaves_alike(one, other, near) for other in others))
    for call, here, there in zip(calls, mine.probes, rival.probes, strict=True):
        if here != there and is_value(here) and is_value(there):
            values = (one.removeprefix("v:")[:LONGEST_OUTCOME] for one in (here, there))
            return "{} gives {} here and {} elsewhere".format(call, *values)
    return ""
