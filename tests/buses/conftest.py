"""The adapters under contract."""

import pytest

from septet.buses.memory import MemoryBus
from septet.ports import Bus


@pytest.fixture(params=["memory"])
async def bus(request: pytest.FixtureRequest) -> Bus:
    return MemoryBus()
