"""What a project's teams should know for good: short facts, capped, changed by adding and dropping."""

import re
from collections.abc import Collection

from septet.common.values import Value

MOST = 40
LONGEST = 300
REMEMBER = re.compile(r"^\W*remember\s*:\s*(?P<fact>\S.*)$", re.IGNORECASE | re.MULTILINE)
FORGET = re.compile(r"^\W*forget\s*:\s*(?P<fact>\S.*)$", re.IGNORECASE | re.MULTILINE)


class FactsChange(Value):
    """Facts to add and facts to drop; replacing one is both."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def change_in(text: str) -> FactsChange | None:
    """The `remember: …` and `forget: …` lines of a message."""
    add = tuple(tidy(found["fact"]) for found in REMEMBER.finditer(text))
    drop = tuple(tidy(found["fact"]) for found in FORGET.finditer(text))
    return FactsChange(add=add, drop=drop) if add or drop else None


def without_facts(text: str) -> str:
    """What a message says beside such lines."""
    return FORGET.sub("", REMEMBER.sub("", text)).strip()


def apply_change(facts: tuple[str, ...], change: FactsChange, own: Collection[str] = ()) -> tuple[str, ...]:
    """The facts afterwards: none twice, none that was dropped, the newest of too many.

    `own` are the person's: they give way only to other facts of the person.
    """
    dropped = {same(fact) for fact in change.drop}
    kept = {same(fact): fact for fact in facts if same(fact) not in dropped}
    kept.update({same(fact): fact for fact in change.add})
    mine = {same(fact) for fact in own}
    others_first = sorted(kept, key=lambda fact: fact in mine)
    for fact in others_first[: max(0, len(kept) - MOST)]:
        del kept[fact]
    return tuple(kept.values())


def same(fact: str) -> str:
    """Two wordings that differ in case, spaces or the full stop are one fact."""
    return " ".join(fact.lower().split()).rstrip(".!")


def tidy(fact: str) -> str:
    return " ".join(fact.split())[:LONGEST]
