"""What every test shares."""

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does: no test of ours may fail by the clock.
settings.register_profile("septet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("septet")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
