"""What tests of the agents share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where interpreters are prepared, once."""
    return tmp_path_factory.mktemp("cache")
