"""AutoGen is optional: without its packages everything else works, and nothing looks for them."""

import subprocess
import sys

WITHOUT_AUTOGEN = """
import importlib, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("autogen_core", "autogen_agentchat"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Absent())
import septet, septet.protocols, septet.cluster
for package in (septet.protocols, septet.cluster):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
try:
    importlib.import_module("septet.autogen")
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_only_septet_autogen_needs_it() -> None:
    command = [sys.executable, "-c", WITHOUT_AUTOGEN]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "autogen_core"
