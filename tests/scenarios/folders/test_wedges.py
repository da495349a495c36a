"""Nothing that a program leaves in its workspace can stop the chat."""

from pathlib import Path

import pytest
from sampling import sampled
from scenarios.folders.chats import ACCEPT, FIXED, REVISE, Played, call, code, plan, play, script

pytestmark = pytest.mark.anyio
PLAN = plan("python add.py", "command python add.py => good")
GOOD = 'print("good")\n'
TRICKS = {
    "its file is a folder": "os.remove('add.py'); os.mkdir('add.py'); open('add.py/x', 'w').write('x')",
    "its file is an empty folder": "os.remove('add.py'); os.mkdir('add.py')",
    "its file is a pipe": "os.remove('add.py'); os.mkfifo('add.py')",
    "its package is a link": "shutil.rmtree('pkg'); os.symlink('/etc', 'pkg')",
    "its package is a file": "shutil.rmtree('pkg'); open('pkg', 'w').write('x')",
    "its package is shut": "os.chmod('pkg', 0)",
    "the workspace is shut": "os.chmod('.', 0)",
    "a shut folder": "os.mkdir('shut'); os.chmod('shut', 0)",
    "a shut folder with a test": "os.mkdir('shut'); open('shut/test_x.py', 'w').write('x'); os.chmod('shut', 0)",
    "many drafts": "[os.mkdir(f'.{n:x}.new') for n in range(100)]; os.mkdir(DRAFT)",
    "keepsakes are folders": "[os.makedirs(f'script_v{n}.py/x', exist_ok=True) for n in range(2, 9)]",
    "keepsakes are pipes": "[os.mkfifo(f'review_v{n}.txt') for n in range(1, 9)]",
    "thousands of files": "[open(f'f{n}.txt', 'w').close() for n in range(3_000)]",
    "many files": "[open(f'f{n}.txt', 'w').close() for n in range(30_000)]",
    "nested folders": "[(os.mkdir('d'), os.chdir('d')) for _ in range(2_000)]",
}
HEAD = """import hashlib, os, shutil, sys
DRAFT = "." + hashlib.sha256(b"add.py").hexdigest()[:16] + ".new"
if "pytest" not in sys.modules:
    {}
print('bad')
"""


@pytest.mark.parametrize("trick", sampled(TRICKS, every=4))
async def test_the_next_version_is_written_and_run(tmp_path: Path, trick: str) -> None:
    bad = {"add.py": HEAD.format(TRICKS[trick]), "pkg/__init__.py": "x = 1\n"}
    good = {"add.py": "import pkg\n" + GOOD, "test_add.py": "def test_it():\n    import pkg\n"}
    model = script(tmp_path, PLAN, code(bad), REVISE, code(good, say=FIXED), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2)
    assert well(played)
    assert (tmp_path / "project" / "add.py").read_text() == good["add.py"]
    assert (tmp_path / "project" / "pkg" / "__init__.py").read_text() == "x = 1\n"


def well(played: Played) -> bool:
    """The second version's program was run and did what the check asks for."""
    from septet.domain.events import EvidenceFound, RunFinished

    tests = [event for event in played.events if isinstance(event, RunFinished) and event.purpose == "tests"]
    evidence = [event for event in played.events if isinstance(event, EvidenceFound)]
    return evidence[-1].passed and tests[-1].result.exit_code == 0


@pytest.mark.parametrize("trick", sampled([*TRICKS][2:], every=4))
@pytest.mark.torture
async def test_the_autocoder_goes_on(tmp_path: Path, trick: str) -> None:
    first = call("create_new_file", {"path": "add.py", "code": HEAD.format(TRICKS[trick])})
    package = call("create_new_file", {"path": "pkg/__init__.py", "code": "x = 1\n"})
    decision = {"wrong": "code", "item": "P1", "why": "it is to print good"}
    second = call("write_code", {"path": "add.py", "code": GOOD, "decision": decision})
    model = script(tmp_path, PLAN, package, first, second, ACCEPT, ACCEPT)
    played = await play(tmp_path, model, "autocoder", rounds=3)
    assert (tmp_path / "project" / "add.py").read_text() == GOOD
    assert all(len(version.files) < 50 for version in played.found)


HISTORY = {
    "pipe": "os.mkfifo('chat_history.txt')",
    "folder": "os.mkdir('chat_history.txt')",
    "link": "os.symlink('/etc/passwd', 'chat_history.txt')",
}


@pytest.mark.parametrize("kind", HISTORY)
async def test_a_history_that_is_no_file_is_kept_elsewhere(tmp_path: Path, kind: str) -> None:
    program = f"import os\nos.remove('chat_history.txt')\n{HISTORY[kind]}\nprint('good')\n"
    model = script(
        tmp_path,
        {"role": "manager", "say": "Do it.\nnext: coder"},
        {"role": "coder", "say": "1. print"},
        code({"main.py": program}),
        {"role": "manager", "say": "terminate: it prints"},
        {"role": "manager", "say": "terminate: it prints"},
    )
    played = await play(tmp_path, model, "pair")
    assert played.ended.reason == "claimed"
    kept = tmp_path / "home" / "keepsakes" / "c" / "chat_history.txt"
    assert "it prints" in kept.read_text()
