"""The programs in `examples/python` do what they say, with a scripted model and a real sandbox."""

import ast
import inspect
import json
import runpy
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cli.commands import SMALL
from starlette.testclient import TestClient

from septet import Result

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
