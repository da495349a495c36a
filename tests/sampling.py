"""Long lists of cases: some of them in every run of the tests, the others in `just torture`."""

from collections.abc import Iterable

import pytest


def sampled(cases: Iterable[str] | Iterable[tuple[object, ...]], every: int) -> list[object]:
    """Each `every`-th case as it is; the rest is marked as torture. A tuple is one case with several values."""
    return [
        pytest.param(
            *((case,) if isinstance(case, str) else case),
            marks=pytest.mark.torture if number % every else (),
        )
        for number, case in enumerate(cases)
    ]
