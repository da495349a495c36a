"""The programs in `examples/python` do what they say, with a scripted model and a real sandbox."""

import ast
import inspect
import json
import runpy
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cli.commands import SCRIPTS, SMALL
from scenarios.assistant.scripts import calls, file, says, send, write
from starlette.testclient import TestClient

from septet import Result, Team
from septet.agents import checks
from septet.domain import plans
from septet.tools import registry

EXAMPLES = Path(__file__).parent.parent / "examples" / "python"


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEPTET_MODEL", SMALL)
    monkeypatch.chdir(tmp_path)


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


def test_an_endpoint_streams_tokens_and_events(tmp_path: Path) -> None:
    with TestClient(example("fastapi_stream.py")["app"]) as client:
        answer = client.get("/build", params={"goal": "add two numbers", "workspace": str(tmp_path / "w")})

    items = [json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line]
    assert any(item.get("token") for item in items)
    assert "septet.chat_ended" in [item.get("type") for item in items]
    assert (tmp_path / "w").is_dir()


@pytest.mark.anyio
async def test_a_bot_asks_its_room(tmp_path: Path) -> None:
    posted: list[str] = []

    async def next_reply() -> str:
        return "yes"

    serve: Callable[..., Awaitable[Result]] = example("approvals_bot.py")["serve"]
    result = await serve("add two numbers", str(tmp_path / "w"), posted.append, next_reply)

    assert result.status == "done"
    assert "check:" in posted[0]
    assert posted[-1].startswith("done")


@pytest.mark.anyio
async def test_a_batch_builds_every_goal(tmp_path: Path) -> None:
    build_all: Callable[..., Awaitable[list[Result]]] = example("batch.py")["build_all"]
    results = await build_all(["add two numbers"] * 3, tmp_path / "all")

    assert [result.status for result in results] == ["done"] * 3
    assert {Path(result.workspace).name for result in results} == {"1", "2", "3"}


@pytest.mark.anyio
async def test_a_notebook_runs_cell_by_cell(tmp_path: Path) -> None:
    """As Jupyter does it: each cell is compiled with `await` allowed at its top."""
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            running = eval(code, names)
            if inspect.isawaitable(running):
                await running

    assert names["result"].status == "done"
    assert (tmp_path / "adding").is_dir()


@pytest.mark.anyio
async def test_a_function_reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEPTET_MODEL", f"scripted:{SCRIPTS / 'quick.yaml'}")
    build: Callable[..., Awaitable[Result]] = example("own_agent.py")["build"]
    assert (await build("a greeting", str(tmp_path / "w"))).status == "done"


@pytest.mark.anyio
async def test_the_log_is_in_a_store_of_the_program(tmp_path: Path) -> None:
    build: Callable[..., Awaitable[tuple[Result, int]]] = example("own_store.py")["build"]
    result, events = await build("add two numbers", str(tmp_path / "w"))
    assert (result.status, events > 10) == ("done", True)
    assert not (tmp_path / "home" / "septet.db").exists()
    assert (tmp_path / "w" / "add.py").is_file()


@pytest.mark.anyio
async def test_a_check_from_outside_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = says("planner", "1. It is short.\n   check: lines hello.py 5\nrun: python hello.py")
    test = "from hello import greeting\n\n\ndef test_greeting():\n    assert greeting() == 'hello'\n"
    code = "def greeting():\n    return 'hello'\n\n\nprint(greeting())\n"
    files = {"hello.py": code, "test_hello.py": test}
    turns = (plan, plan, {"role": "coder", "files": files}, says("reviewer", "verdict: accept"))
    monkeypatch.setenv("SEPTET_MODEL", write(tmp_path / "script.yaml", *turns))
    kinds: dict[str, plans.CheckForm] = {}
    monkeypatch.setattr(plans, "CUSTOM_CHECKS", kinds)
    monkeypatch.setattr(checks, "CUSTOM_CHECKS", kinds)
    example("own_check.py")
    async with Team.load("iterate") as team:
        result = await team.start("hello", workspace=tmp_path / "w")
    assert result.status == "done"
    assert "5 of 5 lines" in str(result)


@pytest.mark.anyio
async def test_a_tool_from_outside_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [
        calls("proxy", send("count")),
        calls("assistant", file("a.txt", "one two three"), ("count_words", {"path": "a.txt"})),
        says("assistant", "three", expect="a.txt has 3 words"),
        says("proxy", "They were counted."),
    ]
    monkeypatch.setenv("SEPTET_MODEL", write(tmp_path / "script.yaml", *turns))
    monkeypatch.setattr(registry, "REGISTERED", dict(registry.REGISTERED))
    build: Callable[..., Awaitable[Result]] = example("own_tool.py")["build"]
    result = await build("count", str(tmp_path / "w"))
    assert result.answer == "They were counted."


def test_a_model_from_outside_answers(tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text("way: group_chat\nmembers: [{role: writer}, {role: editor}]\n")
    talk: Callable[..., Result] = example("own_model.py")["talk"]
    assert talk("a talk", str(tmp_path / "team.yaml")).status == "rounds"


@pytest.mark.parametrize("name", ["agent", "check", "model", "store", "tool"])
def test_what_comes_from_outside_is_short(name: str) -> None:
    assert len((EXAMPLES / f"own_{name}.py").read_text().splitlines()) <= 15
