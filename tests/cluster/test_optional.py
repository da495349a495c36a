"""The cluster is optional as one piece: without its extra, everything else works and nothing looks for NATS."""

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_NATS = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "nats":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
"""
# What is inside a sandbox is started there, beside modules that are called otherwise.
IMPORT_ALL = """
import septet
for module in pkgutil.walk_packages(septet.__path__, "septet."):
    try:
        if not module.name.endswith("__main__") and not module.name.startswith("septet.sandboxes.inside."):
            importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert error.name and error.name.split(".")[0] == "nats", error
        print(module.name)
"""
RUN = "from septet.__main__ import main; sys.argv = ['septet', *sys.argv[1:]]; main()"
PARTS = ("septet.cluster.", "septet.autogen", "septet.protocols.autogen.")
COMMANDS = {"septet.cli.host"}
"""Commands of the cluster, which are imported when somebody types them."""


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_NATS + code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.torture
def test_only_the_cluster_and_its_commands_need_nats() -> None:
    done = python(IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    others = [name for name in done.stdout.split() if not name.startswith(PARTS)]
    assert set(others) == {*COMMANDS, "septet.wiring.cluster"}


@pytest.mark.parametrize("words", [("--help",), ("join", "--help"), ("web", "--help"), ("list",)])
def test_commands_work_without_nats(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path))
    done = python(RUN, *words)
    assert done.returncode == 0, done.stderr
