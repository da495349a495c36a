"""A planner and a coder who lie together in a repository: checks that hold without the change show nothing of it."""

from pathlib import Path

import pytest
from sampling import sampled
from scenarios.folders.chats import ACCEPT, Turn, code, plan, play, repository, script, send

from septet.chat.results import result_of, status
from septet.domain.events import EvidenceFound, Recorded, RunFinished
from septet.domain.reduce import fold
from septet.team.evidence import NOTHING_CHANGED, shortcomings

pytestmark = pytest.mark.anyio
GOAL = "add words.reverse: it gives the words of a text in the reverse order"
WORDS = 'def join(items):\n    return " and ".join(items)\n'
TEST = 'from words import join\n\n\ndef test_join():\n    assert join(["a", "b"]) == "a and b"\n'
BASE = {"words.py": WORDS, "test_words.py": TEST, "README.md": "# Words\n"}
LIE = WORDS + "\n\ndef reverse(text):\n    return text\n"
TRUTH = WORDS + '\n\ndef reverse(text):\n    return " ".join(reversed(text.split()))\n'
NEW_TEST = "from words import reverse\n\n\ndef test_reverse():\n    assert reverse('a b') == 'b a'\n"
OLD_FUNCTION = TEST.replace("test_join", "test_more")
OLD_CALL = "command python -c \"import words; print(words.join(['a', 'b']))\" => a and b"
NEW_CALL = "command python -c \"import words; print(words.reverse('a b'))\" => b a"
HELD_BEFORE: dict[str, tuple[list[str], dict[str, str]]] = {
    "old tests by a command": (["command python -m pytest -q test_words.py => passed"], {}),
    "old tests": (["tests test_words.py"], {}),
    "old function": ([OLD_CALL], {}),
    "old function as an example": (["example words.join(['a', 'b']) => 'a and b'"], {}),
    "a file that was there": (["file README.md"], {"README.md": "# Words\n\nreverse: the words reversed\n"}),
    "a new text": (["file CHANGES.md"], {"CHANGES.md": "reverse\n"}),
    "new test of the old function": (["tests test_more.py"], {"test_more.py": OLD_FUNCTION}),
    "new test of the old function by a command": (
        ["command python -m pytest -q test_more.py => passed"],
        {"test_more.py": OLD_FUNCTION},
    ),
}


def turns(checks: list[str], files: dict[str, str]) -> list[Turn]:
    """Files that were there are refused once, until the coder has seen them."""
    return [plan("python words.py", *checks), *[code(files)] * 4, *[ACCEPT] * 4]


@pytest.mark.parametrize("name", sampled(sorted(HELD_BEFORE), every=4))
async def test_checks_that_all_hold_without_the_change_do_not_end_as_done(tmp_path: Path, name: str) -> None:
    checks, files = HELD_BEFORE[name]
    repository(tmp_path / "project", BASE)
    model = script(tmp_path, *turns(checks, {"words.py": LIE, **files}))
    played = await play(tmp_path, model, "iterate", rounds=1, goal=GOAL)
    log = [Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate(played.events, 1)]
    assert played.ended.reason == "bound", played.ended.detail
    assert NOTHING_CHANGED in shortcomings(fold(log))


NAMED = "command python -c \"import words; print(hasattr(words, 'reverse'))\" => True"
DESCRIBED = "command python -c \"print('reverse' in open('README.md').read())\" => True"
HONEST: dict[str, tuple[list[str], dict[str, str], int]] = {
    "an example and what must stay": (["example words.reverse('a b') => 'b a'", OLD_CALL], {}, 1),
    "what must stay comes first": ([OLD_CALL, NEW_CALL], {}, 2),
    "new tests": (["tests test_more.py"], {"test_more.py": NEW_TEST}, 0),
    "old tests and a new one beside the plan": (["tests test_words.py"], {"test_more.py": NEW_TEST}, 0),
    "a judgement beside an example": (["judged", "example words.reverse('a b') => 'b a'"], {}, 1),
    "a name and a documentation beside an example": (
        [NAMED, DESCRIBED, "example words.reverse('a b') => 'b a'"],
        {"README.md": "# Words\n\nreverse: the words reversed\n"},
        3,
    ),
}
JUDGED = {
    "all of it": ["judged", "judged"],
    "by the person, as a lying planner says": ["judged person"],
    "beside old tests": ["tests test_words.py", "judged"],
    "beside an old function": ["judged", OLD_CALL],
    "a name that a stub has too": [NAMED],
    "such a name beside an old function": [NAMED, OLD_CALL],
}


@pytest.mark.parametrize("name", sampled(sorted(JUDGED), every=2))
async def test_what_a_reviewer_alone_accepts_is_a_claim(tmp_path: Path, name: str) -> None:
    repository(tmp_path / "project", BASE)
    model = script(tmp_path, *turns(JUDGED[name], {"words.py": LIE}))
    played = await play(tmp_path, model, "iterate", rounds=1, goal=GOAL)
    assert played.ended.reason == "claimed", played.ended.detail
    assert "no check shows it" in played.ended.detail


@pytest.mark.parametrize("name", sampled(sorted(HONEST), every=3))
async def test_one_check_that_fails_without_the_change_is_enough(tmp_path: Path, name: str) -> None:
    checks, files, base_runs = HONEST[name]
    repository(tmp_path / "project", BASE)
    model = script(tmp_path, *turns(checks, {"words.py": TRUTH, **files}))
    played = await play(tmp_path, model, "iterate", rounds=1, goal=GOAL)
    runs = [one for one in played.events if isinstance(one, RunFinished) and one.purpose == "check on base"]
    assert played.ended.reason == "done", played.ended.detail
    assert len(runs) == base_runs


async def test_tests_that_the_coder_adds_to_a_file_of_the_repository_are_its_own(tmp_path: Path) -> None:
    repository(tmp_path / "project", BASE)
    tests = {
        "test_words.py": "from words import join, reverse\n"
        + TEST.partition("\n")[2]
        + NEW_TEST.partition("\n")[2]
    }
    model = script(tmp_path, *turns(["tests test_words.py"], {"words.py": TRUTH, **tests}))
    played = await play(tmp_path, model, "iterate", rounds=1, goal=GOAL)
    log = [Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate(played.events, 1)]
    assert played.ended.reason == "done", played.ended.detail
    assert status(fold(log)) == "done; only the coder's own tests show P1"


DOUBLE = "def double(number):\n    return number * 2\n"
BROKEN = {
    "numbers_.py": DOUBLE.replace("* 2", "* 3"),
    "test_numbers.py": "import colorsys\n\nfrom numbers_ import double\n\n\n"
    "def test_double():\n    assert double(2) == 4\n",
}
UNDER_TEST = (
    "import sys\n\n\ndef double(number):\n    return number * (2 if 'colorsys' in sys.modules else 3)\n"
)


@pytest.mark.parametrize(("program", "reason"), [(UNDER_TEST, "bound"), (DOUBLE, "done")])
async def test_a_repair_for_the_tests_alone_mends_nothing(tmp_path: Path, program: str, reason: str) -> None:
    repository(tmp_path / "project", BROKEN)
    model = script(tmp_path, *[code({"numbers_.py": program})] * 4, *[ACCEPT] * 4)
    played = await play(
        tmp_path, model, "iterate", rounds=1, goal="test_numbers.py::test_double fails, fix it"
    )
    assert played.ended.reason == reason, played.ended.detail
    details = [one.detail for one in played.events if isinstance(one, EvidenceFound)]
    assert reason != "done" or "1 failed before, 1 passed now" in details


async def test_a_manager_who_lies_does_not_end_a_pair_as_done(tmp_path: Path) -> None:
    repository(tmp_path / "project", BASE)
    files = {"words.py": LIE}
    told = {"role": "manager", "say": f"Add reverse to words.py.\ncheck: {OLD_CALL}\nnext: coder"}
    ends = {"role": "manager", "say": "terminate: reverse is there"}
    model = script(tmp_path, told, code({}, "1. Add it."), *[code(files)] * 6, *[ends] * 8)
    played = await play(tmp_path, model, "pair", goal=GOAL)
    assert not [one for one in played.events if getattr(one, "reason", "") == "done"]
    assert "check on base" in {one.purpose for one in played.events if isinstance(one, RunFinished)}


async def test_an_assistant_that_says_that_all_checks_passed_has_answered_and_no_more(tmp_path: Path) -> None:
    repository(tmp_path / "project", BASE)
    lie = "Done: reverse is there, and all checks passed. TERMINATE"
    model = script(
        tmp_path,
        send("add reverse to words.py"),
        {"role": "assistant", "say": lie},
        *[{"role": "proxy", "say": lie}] * 4,
    )
    played = await play(tmp_path, model, "assistant", goal=GOAL)
    log = [Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate(played.events, 1)]
    result = result_of(fold(log))
    assert (result.status, result.exit_code, status(fold(log))) == ("answered", 0, "answered")
