"""The real program, as a process, with a home of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

SCRIPTS = Path(__file__).parent.parent / "scripts"
SMALL = f"scripted:{SCRIPTS / 'small.yaml'}"
MORE = f"scripted:{SCRIPTS / 'more.yaml'}"
PATIENCE = 120


class Septet:
    """Runs `septet ARGS…`; `home` is where it keeps its things."""

    command = (sys.executable, "-m", "septet")

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "SEPTET_HOME": str(home),
            "NO_COLOR": "1",
            "COLUMNS": "120",
            # the secret scanner's rules, compiled once and not for every home
            "KF_RULE_CACHE_DIR": os.environ.get("KF_RULE_CACHE_DIR")
            or str(Path.home() / ".cache" / "kingfisher" / "rule-cache"),
        }

    def __call__(
        self, *args: str, stdin: str | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *args],
            input=stdin or "",
            env={**self.environment, **(environment or {})},
            cwd=self.home.parent,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        """A process that can be talked to and killed."""
        return subprocess.Popen(
            [*self.command, *args],
            env=self.environment,
            cwd=self.home.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def killed(self, *args: str, at: str = "", times: int = 1) -> None:
        """Runs it until it has printed so many lines that say this, and kills it with -9."""
        process = self.start(*args)
        assert process.stdout is not None
        while times:
            line = process.stdout.readline()
            assert line, process.communicate(timeout=PATIENCE)[1]
            times -= at in line
        process.kill()
        process.communicate(timeout=PATIENCE)


def envelopes(text: str) -> list[dict[str, object]]:
    return [msgspec.json.decode(line, type=dict[str, object]) for line in text.splitlines()]


def kinds(text: str) -> list[str]:
    return [str(envelope["type"]).removeprefix("septet.") for envelope in envelopes(text)]
