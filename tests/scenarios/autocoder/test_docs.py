"""The examples of the pages about the autocoder and the assistant are run as they stand."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest

from septet import Handle
from septet.tools import registry as tool_registry

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def registry() -> Generator[None]:
    yield
    tool_registry.REGISTERED.clear()


def run(page: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for code in BLOCK.findall((DOCS / page).read_text()):
        names: dict[str, object] = {"__name__": "example"}
        exec(code, names)
        found.append(names)
    return found


@pytest.mark.usefixtures("registry")
def test_the_autocoders_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    first, _ = run("autocoder.md")
    assert isinstance(first["handle"], Handle)
    assert capsys.readouterr().out == "done\n"
    assert (tmp_path / "random_midi_generator" / "random.mid").exists()
    assert "add_licence" in tool_registry.REGISTERED


@pytest.mark.usefixtures("registry")
def test_the_assistants_page() -> None:
    run("assistant.md")
    assert tool_registry.REGISTERED["count_lines"].offer().parameters["required"] == ["path"]
