"""`bench/outcome.py`: everybody is counted by its proxy, and judged by the hidden tests."""

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import anyio
import pytest
from evaluation.oracle import oracle
from msgspec.structs import replace

from septet.domain.teams import TeamSpec
from septet.evaluation.suites import read_suite
from septet.settings.team_files import load_team
from septet.testing.server import serve_mock
from septet.ways.table import TEAMS
from septet.wiring.session import with_model

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).absolute().parents[2]
WRONG = {"median": "def middle(numbers):\n    return sorted(numbers)[len(numbers) // 2]\n"}
"""Meets the stated example."""


def load_bench(name: str) -> ModuleType:
    """A module of bench/, which is no package."""
    spec = spec_from_file_location(name, ROOT / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def compare(url: str, folder: Path) -> str:
    (folder / "ids.txt").write_text("median\n")
    command = [sys.executable, str(ROOT / "bench" / "outcome.py"), "small", f"{url}#oracle"]
    command += ["--list", str(folder / "ids.txt"), "--jobs", "3"]
    names = ["--who", "single,best-of-8,septet", "--out", str(folder / "out.jsonl")]
    environment = {**os.environ, "SEPTET_HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder)}
    done = await anyio.run_process([*command, *names], env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize(("wrong", "right"), [({}, 1), (WRONG, 0)])
async def test_each_is_counted_and_judged_alike(wrong: dict[str, str], right: int, tmp_path: Path) -> None:
    async with serve_mock(oracle(read_suite("small"), wrong)) as server:
        printed = await compare(server.url, tmp_path)
        asked = len(server.seen)
        assert await compare(server.url, tmp_path) == printed
        assert len(server.seen) == asked, "what is known is not done again"
    rows = [line.split(" | ") for line in printed.splitlines() if " of 1 (" in line]
    assert [(row[0], row[1].partition(" (")[0]) for row in rows] == [
        ("| single", f"{right} of 1"),
        ("| best-of-8", f"{right} of 1"),
        ("| septet", f"{right} of 1"),
    ]
    called = f"Septet called 1 of 1 done; of these {1 - right} are wrong"
    assert called in printed
    assert f"of its {right} right ones {right} are called done" in printed
    answers = [float(row[4]) for row in rows]
    assert answers[:2] == [1, 9]
    assert sum(answers) == asked


def test_the_team_of_a_local_model_is_written_as_the_product_makes_it(tmp_path: Path) -> None:
    write = load_bench("small_team").write_small_team
    there = with_model(load_team(str(write(tmp_path / "small.yaml"))), "url:http://127.0.0.1:1/v1#q15")
    local = with_model(TEAMS["iterate"], "local/qwen2.5-coder-1.5b")
    assert without_models(there) == replace(without_models(local), file=there.file, keepsakes=())
    assert next(one for one in there.members if one.role == "coder").candidates > 1


def without_models(team: TeamSpec) -> TeamSpec:
    return replace(team, members=tuple(replace(one, model=()) for one in team.members))


@pytest.mark.parametrize("box", ["bwrap", "namespaces"])
def test_a_program_in_a_box_writes_to_its_folder_alone_and_ends_with_it(box: str, tmp_path: Path) -> None:
    boxes = load_bench("box")
    if not boxes.can_make(box):
        pytest.skip(f"no {box} here")
    folder, outside = tmp_path / "inside", tmp_path / "outside"
    for path in (folder, outside):
        path.mkdir()
    (outside / "data").write_text("seen")
    code = (
        f"(sleep 100 &) ; cp {outside}/data . ; echo x > {outside}/data || echo x > {tmp_path}/more ; exit 7"
    )
    command = boxes.command_in(box, folder, (outside,), ("sh", "-c", code))
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 7, done.stderr
    assert (folder / "data").read_text() == (outside / "data").read_text() == "seen"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "outside"]


STREAMED = b"""data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}

data: {"choices": [{"index": 2, "delta": {"content": "b"}}]}

data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 9}}

data: [DONE]
"""
WHOLE = b'{"choices": [{"index": 0}, {"index": 1}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}'


def test_several_answers_to_one_request_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    outcome = load_bench("outcome")
    books, spent = outcome.Proxy("", None), outcome.Spent()
    books.book(spent, 200, STREAMED)
    books.book(spent, 200, WHOLE)
    books.book(spent, 400, b"{}")
    assert (spent.answers, spent.refused, spent.prompt, spent.said) == (5, 1, 6, 11)
