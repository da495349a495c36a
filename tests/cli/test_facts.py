"""Memory: facts with source and date, told to every team of the project, changed by people and members alike."""

from pathlib import Path

import pytest
from cli.commands import SMALL, Septet
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.events import ChatStarted, FactsChanged, Recorded
from septet.domain.facts import MAX_FACTS, FactsChange, apply_change, change_in, normalised
from septet.domain.reduce import fold
from septet.ways.table import TEAMS
from septet.workspace.facts_file import Memory


@pytest.mark.torture
def test_a_fact_is_told_to_the_next_team_of_the_same_project(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    shown = septet("facts", "-C", "w", "remember: Names are in English.")
    assert shown.stdout.startswith("- Names are in English. (the person, 20"), shown.stderr
    script = Path(SMALL.removeprefix("scripted:")).read_text()
    expecting = script.replace("- role: planner\n", "- role: planner\n  expect: Names are in English.\n", 1)
    (tmp_path / "s.yaml").write_text(
        expecting.replace("verdict: accept", "remember: sums are integers\n    verdict: accept")
    )
    done = septet("run", "add", "-m", "scripted:s.yaml", "--yes", "-C", "w", "-n", "adding")
    assert done.returncode == 0, done.stderr
    after = septet("facts", "-C", "w").stdout
    assert "- sums are integers (reviewer in adding, 20" in after
    assert "Names are in English." in septet("facts", "-C", "w", "forget: sums are integers").stdout
    assert "integers" not in septet("facts", "-C", "w").stdout


def test_a_person_can_say_it_in_the_chat(septet: Septet) -> None:
    septet("run", "add", "-m", SMALL, "-n", "adding", "-C", "w", "-q")
    waiting = septet("resume", "adding", "remember: the person likes short names")
    assert waiting.returncode == 4, "the plan still waits for its approval"
    assert "likes short names (person in adding" in septet("facts", "-C", "w").stdout


def test_what_changes_nothing_is_refused(septet: Septet) -> None:
    refused = septet("facts", "make it nice")
    assert (refused.returncode, "write 'remember: FACT'" in refused.stderr) == (2, True)


FACTS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)


@given(st.lists(FACTS, max_size=60), st.lists(FACTS, max_size=5))
def test_facts_are_unique_and_capped_and_what_is_dropped_is_gone(add: list[str], drop: list[str]) -> None:
    after = apply_change(apply_change((), FactsChange(add=tuple(add))), FactsChange(drop=tuple(drop)))
    names = [normalised(fact) for fact in after]
    assert len(names) == len(set(names)) <= MAX_FACTS
    assert not set(names) & {normalised(fact) for fact in drop}


def test_only_lines_of_their_own_are_facts() -> None:
    assert change_in("I remember: it well") is None
    assert change_in("text\n- remember: blue\nforget: red") == FactsChange(add=("blue",), drop=("red",))


MANY = FactsChange(add=tuple(f"of the model {number}" for number in range(MAX_FACTS + 5)))


def test_facts_of_a_model_never_push_out_those_of_the_person(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "facts", tmp_path / "w")
    memory.change(FactsChange(add=("names are in English",)), "the person, 2026-01-01")
    memory.change(FactsChange(add=("tests are short",)), "person in adding, 2026-01-02")
    memory.change(MANY, "reviewer in adding, 2026-01-03")
    facts = memory.facts()
    assert facts[:2] == ("names are in English", "tests are short")
    assert (len(facts), facts[-1]) == (MAX_FACTS, MANY.add[-1])
    assert memory.own_facts() == facts[:2]


def test_a_chat_keeps_the_facts_of_the_person_whatever_its_members_remember() -> None:
    mine, theirs = "names are in English", "sums are integers"
    started = ChatStarted(
        goal="add", team=TEAMS["iterate"], workspace="/w", facts=(mine, theirs), own_facts=(mine,)
    )
    said = FactsChanged(by="person", change=FactsChange(add=("tests are short",)))
    events = [started, said, FactsChanged(by="reviewer", change=MANY)]
    state = fold(Recorded(chat="c", seq=seq, at=0.0, event=event) for seq, event in enumerate(events, 1))
    assert {mine, "tests are short"} <= set(state.facts)
    assert theirs not in state.facts
    assert len(state.facts) == MAX_FACTS


def test_the_person_may_still_have_a_fact_dropped_and_replace_the_oldest_of_too_many() -> None:
    own = tuple(f"fact {number}" for number in range(MAX_FACTS))
    assert apply_change(own, FactsChange(drop=own[:1]), own) == own[1:]
    assert apply_change(own, FactsChange(add=("newest",)), (*own, "newest")) == (*own[1:], "newest")
    assert apply_change(own, FactsChange(add=("of a model",)), own) == own


def test_the_editor_opens_also_where_a_project_has_no_facts_yet(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "edit.sh").write_text("#!/bin/sh\necho '- tabs are four spaces' >> \"$1\"\n")
    (tmp_path / "edit.sh").chmod(0o755)
    edited = septet("facts", "-C", "w", "--edit", environment={"EDITOR": str(tmp_path / "edit.sh")})
    assert "- tabs are four spaces (the person)" in edited.stdout, edited.stderr
