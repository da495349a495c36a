"""acpx, the headless editor, drives a chat end to end: plan, approval, cancel, permission. By npm: `just torture`."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PACKAGES = ("node@22", "acpx@0.19.1")
QUICK = Path(__file__).parent.parent / "scripts" / "quick.yaml"
SLOW = """
turns:
- role: planner
  say: |
    1. It waits
       check: command python wait.py => done
    run: python wait.py
- role: coder
  say: It waits.
  files:
    wait.py: |
      import time
      time.sleep(50)
"""


class Acpx:
    def __init__(self, folder: Path, script: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "notes.txt").write_text("mine\n")
        self.agent = f"{sys.executable} -m septet acp -m scripted:{script}"
        self.environment = {
            "PATH": f"{folder / 'node_modules' / '.bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "SEPTET_HOME": str(folder / "home"),
        }

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            ["acpx", "--agent", self.agent, "--ttl", "5", *words],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["acpx", "--agent", self.agent, "--ttl", "5", *words],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not here")
    command = ["npm", "install", "--prefix", str(tmp_path), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"acpx cannot be fetched ({done.stderr[-200:]})")
    return tmp_path


@pytest.mark.torture
def test_a_plan_is_approved_and_the_work_permitted(folder: Path) -> None:
    acpx = Acpx(folder, QUICK)
    acpx("sessions", "new")
    assert "Approve this plan?" in acpx("--approve-all", "prompt", "greet")
    built = acpx("--approve-all", "prompt", "yes")
    for said in ("[plan]", "diff ", "[terminal]", "session/request_permission", "written into", "end_turn"):
        assert said in built, built
    assert (acpx.project / "hello.py").exists()
    assert "taken back" in acpx("--approve-all", "prompt", "/undo")
    assert not (acpx.project / "hello.py").exists()


@pytest.mark.torture
def test_who_denies_keeps_the_folder(folder: Path) -> None:
    acpx = Acpx(folder, QUICK)
    acpx("sessions", "new")
    acpx("--deny-all", "prompt", "greet")
    acpx("--deny-all", "prompt", "yes", code=5)  # its code for a permission that was denied
    assert not (acpx.project / "hello.py").exists()
    acpx("--approve-all", "prompt", "/deliver")
    assert (acpx.project / "hello.py").exists()


@pytest.mark.torture
def test_a_cancelled_prompt_pauses_the_chat(folder: Path) -> None:
    (folder / "slow.yaml").write_text(SLOW)
    acpx = Acpx(folder, folder / "slow.yaml")
    acpx("sessions", "new")
    acpx("prompt", "wait")
    with acpx.start("prompt", "yes") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "version 1" in line:
                acpx("cancel")
                break
        rest = running.stdout.read()
        began = time.monotonic()
        running.wait(60)
        assert time.monotonic() - began < 60
    assert "cancelled" in rest
    assert "asks" not in acpx("prompt", "/status")
