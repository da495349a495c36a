"""The facts of a project, which its teams remember: short, limited in number, changed by adding and dropping."""

import re
from collections.abc import Collection, Iterable

from septet.common.values import Value

MAX_FACTS = 40
MAX_FACT_LENGTH = 300
REMEMBER = re.compile(r"^\W*remember\s*:\s*(?P<fact>\S.*)$", re.IGNORECASE | re.MULTILINE)
FORGET = re.compile(r"^\W*forget\s*:\s*(?P<fact>\S.*)$", re.IGNORECASE | re.MULTILINE)


class FactsChange(Value):
    """Facts to add and facts to drop; replacing one is both."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def change_in(text: str) -> FactsChange | None:
    """Parse the `remember: …` and `forget: …` lines of a message."""
    add = tuple(tidy(match["fact"]) for match in REMEMBER.finditer(text))
    drop = tuple(tidy(match["fact"]) for match in FORGET.finditer(text))
    return FactsChange(add=add, drop=drop) if add or drop else None


def without_facts(text: str) -> str:
    """Return the message without such lines."""
    return FORGET.sub("", REMEMBER.sub("", text)).strip()


def apply_change(facts: tuple[str, ...], change: FactsChange, own: Collection[str] = ()) -> tuple[str, ...]:
    """Return the facts after the change, without duplicates; if there are too many, the oldest are dropped.

    `own` are the person's: they are dropped only for other facts of the person.
    """
    dropped = {normalised(fact) for fact in change.drop}
    kept = {normalised(fact): fact for fact in facts if normalised(fact) not in dropped}
    kept.update({normalised(fact): fact for fact in change.add})
    persons = {normalised(fact) for fact in own}
    others_first = sorted(kept, key=lambda fact: fact in persons)
    for fact in others_first[: max(0, len(kept) - MAX_FACTS)]:
        del kept[fact]
    return tuple(kept.values())


def facts_named(name: str, facts: Iterable[str]) -> list[str]:
    """Return what the facts of the form `name: …` say, the oldest first."""
    return [fact.partition(":")[2].strip() for fact in facts if fact.lower().startswith(f"{name}:")]


def fact_named(name: str, facts: Iterable[str]) -> str:
    """Return what the newest fact of the form `name: …` says."""
    return next(reversed(facts_named(name, facts)), "")


def normalised(fact: str) -> str:
    """Return a key that ignores case, spaces and the final full stop."""
    return " ".join(fact.lower().split()).rstrip(".!")


def tidy(fact: str) -> str:
    return " ".join(fact.split())[:MAX_FACT_LENGTH]
