"""Environments of the programs that Septet is measured beside, built with uv outside of the repository."""

import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "septet-bench"


def interpreter(name: str, requirements: Sequence[str]) -> str:
    """The Python of an environment, which is built if it is not there; without requirements this one."""
    if not requirements:
        return sys.executable
    folder = CACHE / f"{name}-{sha256(' '.join(requirements).encode()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"building {folder}", file=sys.stderr)
        subprocess.run(["uv", "venv", "-q", "--clear", "--python", sys.executable, folder], check=True)
        subprocess.run(["uv", "pip", "install", "-q", "--python", python, *requirements], check=True)
        (folder / "ready").touch()
    return str(python)
