"""Environments of the programs that Septet is measured beside, built with uv outside of the repository.

Where nothing can be fetched, SEPTET_BENCH_ENVIRONMENTS names a folder in which they are ready: NAME/bin/python.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "septet-bench"

READY = os.environ.get("SEPTET_BENCH_ENVIRONMENTS", "")


def interpreter(name: str, requirements: Sequence[str]) -> str:
    """The Python of an environment, which is built if it is not there; without requirements this one."""
    if not requirements:
        return sys.executable
    if READY:
        return ready_interpreter(name)
    folder = CACHE / f"{name}-{sha256(' '.join(requirements).encode()).hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"building {folder}", file=sys.stderr)
        subprocess.run(["uv", "venv", "-q", "--clear", "--python", sys.executable, folder], check=True)
        subprocess.run(["uv", "pip", "install", "-q", "--python", python, *requirements], check=True)
        (folder / "ready").touch()
    return str(python)


def ready_interpreter(name: str) -> str:
    python = Path(READY).absolute() / name / "bin" / "python"
    if not python.exists():
        sys.exit(f"SEPTET_BENCH_ENVIRONMENTS has no {python}")
    return str(python)


def readable_folders() -> list[Path]:
    """What a box must show of the environments."""
    return [path for path in (CACHE, *([Path(READY).absolute()] if READY else [])) if path.exists()]
