"""What a person reads when something is missing."""

import os
import subprocess
import sys

HIDING = """
import sys
sys.modules["nats"] = None
from septet.cli.main import main
sys.argv = ["septet", *sys.argv[1:]]
main()
"""


def test_a_command_whose_package_is_missing_says_what_to_install(tmp_path: os.PathLike[str]) -> None:
    environment = {**os.environ, "SEPTET_HOME": str(tmp_path)}
    command = [sys.executable, "-c", HIDING, "join", "nats://127.0.0.1:4222", "--as", "coder"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 5
    assert done.stderr == "septet: the package nats is not installed: pip install 'septet[cluster]'\n"
