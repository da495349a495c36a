"""What every test shares."""

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from cli.commands import SMALL, Septet
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does: no test of ours may fail by the clock.
settings.register_profile("septet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("septet")

HERE = Path(__file__).parent
SHORT = frozenset("common domain settings stores team chat ports runtime workspace test_shape.py".split())
"""Whose files take a few seconds at most: they come last, so that no worker ends long after the others."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The order in which workers take files up (`--no-loadscope-reorder`); those with many tests come first."""
    if hasattr(config, "workerinput"):
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (item.path.relative_to(HERE).parts[0] in SHORT, -tests[item.path]))


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


@pytest.fixture
def septet(tmp_path: Path) -> Septet:
    return Septet(tmp_path / "home")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's folder in which the chat `adding` ended done, built once; beside it is a copy to begin from."""
    place = tmp_path_factory.mktemp("built") / "person"
    septet = Septet(place / "home")
    place.mkdir()
    done = septet("run", "add two numbers", "-m", SMALL, "--yes", "-q", "-n", "adding")
    assert done.returncode == 0, done.stderr
    shutil.copytree(place, place.with_name("kept"))
    return place


@pytest.fixture
def adding(built: Path) -> Septet:
    """The same as new, and in the same place: a chat knows by its whole path where its program is."""
    shutil.rmtree(built)
    shutil.copytree(built.with_name("kept"), built)
    return Septet(built / "home")
