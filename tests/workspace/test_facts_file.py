"""The file of a project's facts: who said what, kept through changes and edits by hand."""

from pathlib import Path

import pytest

from septet.domain.facts import FactsChange
from septet.errors import StoreFailed
from septet.workspace.facts_file import Memory, is_person_fact


def test_each_folder_has_its_own_file_under_its_name(tmp_path: Path) -> None:
    one, other = Memory(tmp_path, Path("/a/shop")), Memory(tmp_path, Path("/b/shop"))
    assert one.path.name.startswith("shop-")
    assert len(one.path.name) == len("shop-12345678.md")
    assert one.path != other.path
    assert Memory(tmp_path, Path("/")).path.name.startswith("root-")


def test_facts_keep_their_source_and_the_persons_word_wins(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "deep", Path("/a/shop"))
    assert (memory.facts(), memory.own_facts()) == ((), ())
    memory.change(FactsChange(add=("Use tabs",)), "coder in c, 2026-11-19")
    memory.change(FactsChange(add=("Python 3.11", "Use tabs")), "planner in c, 2026-11-19")
    assert memory.lines() == {"Use tabs": "coder in c, 2026-11-19", "Python 3.11": "planner in c, 2026-11-19"}
    memory.change(FactsChange(add=("Use tabs",)), "person in c, 2026-11-19")
    memory.change(FactsChange(add=("Use tabs",)), "coder in d, 2026-11-19")
    assert memory.lines() == {
        "Use tabs": "person in c, 2026-11-19",
        "Python 3.11": "planner in c, 2026-11-19",
    }
    assert memory.own_facts() == ("Use tabs",)
    with memory.path.open("a") as file:
        file.write("- Ask first\nnot a fact\n")
    assert memory.lines()["Ask first"] == "the person"
    memory.change(FactsChange(drop=("Python 3.11",)), "the person, 2026-11-19")
    assert memory.facts() == ("Use tabs", "Ask first")
    assert [path.name for path in memory.path.parent.iterdir()] == [memory.path.name]


def test_a_file_to_edit_is_made_once(tmp_path: Path) -> None:
    memory = Memory(tmp_path, Path("/a/shop"))
    memory.ensure_file()
    assert memory.facts() == ()
    memory.change(FactsChange(add=("Use tabs",)), "the person, 2026-11-19")
    memory.ensure_file()
    assert memory.facts() == ("Use tabs",)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "file" / "facts", Path("/a/shop"))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailed, match="cannot be kept"):
        memory.change(FactsChange(add=("x",)), "coder")
    folder = Memory(tmp_path, Path("/a/shop"))
    folder.path.mkdir()
    with pytest.raises(StoreFailed, match="cannot be read"):
        folder.facts()


@pytest.mark.parametrize(
    ("source", "own"), [("the person", True), ("person in c", True), ("coder in c", False), ("", False)]
)
def test_whose_word_a_fact_is(source: str, own: bool) -> None:
    assert is_person_fact(source) is own
