"""What every test shares."""

import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does: no test of ours may fail by the clock.
settings.register_profile("septet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("septet")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Callable[[str], Path]]:
    """Mounts a disk with the given options, or mounts it again with others, and says where it is."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "tmpfs", str(folder), "-o"]
    if subprocess.run([*command, "size=1m"], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk is not permitted here")

    def mount(options: str) -> Path:
        subprocess.run([*command, f"remount,{options}"], check=True)
        return folder

    yield mount
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
