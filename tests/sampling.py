"""Long lists of cases: some of them in every run of the tests, the others in `just torture`."""

from collections.abc import Iterable

import pytest


def sampled(names: Iterable[str], every: int) -> list[object]:
    """Each `every`-th name as it is; the rest is marked as torture."""
    return [
        pytest.param(name, marks=pytest.mark.torture if number % every else ())
        for number, name in enumerate(names)
    ]
