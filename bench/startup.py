"""CPU of starting: bare Python, click, `septet --help`, `septet list`, in one run. Bar: --help under 100 ms."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile

TIMES = 15
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import click": ["-c", "import click"],
    "septet --help": ["-m", "septet", "--help"],
    "septet run --help": ["-m", "septet", "run", "--help"],
    "septet list": ["-m", "septet", "list"],
}


def cpu(args: list[str], environment: dict[str, str]) -> float:
    """Milliseconds of CPU, user and system, that one start takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "SEPTET_HOME": home}
        print(f"{'':20} median of {TIMES}, ms CPU    least")
        for name, args in COMMANDS.items():
            taken = [cpu(args, environment) for _ in range(TIMES)]
            print(f"{name:20} {statistics.median(taken):20.0f} {min(taken):8.0f}")


if __name__ == "__main__":
    main()
