"""Replies of every make, hundreds of them: no file that one names vanishes, and nothing half becomes a version."""

import ast
import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from team.states import chat, planned

from septet.agents.replies import PartRefused
from septet.agents.reply_files import files_sent, texts_of
from septet.domain.events import ReplyRefused, TurnOpened
from septet.domain.plans import Plan, Refusal, parse_plan, plan_text
from septet.domain.replies import CodeFile
from septet.stores.memory import MemoryBlobs
from septet.team.reviews import parse_review

pytestmark = pytest.mark.anyio

PLAIN = """a.py pkg/b.py tests/test_a.py Makefile Dockerfile LICENSE .gitignore .github/workflows/ci.yml my_file.py
data/in.csv page.html style.css bin/start.sh c.d/e.toml README.md""".split()
NAMES = st.sampled_from([*PLAIN, "my file.py", "docs/my notes.md"])
SOUND = st.sampled_from(
    ["x = 1\n", "def f():\n    return '```'\n", '"""Use:\n\n```\nrun\n```\n"""\ny = 2\n', "a: b\nc:\n  - d\n"]
)
HALF = st.sampled_from(
    [
        "def f(:\n",
        "def f():\n    ...\n",
        "# ... rest of the code\n",
        "x = (1,\n",
        "def f():\n    # existing code here\n    pass\n",
    ]
)
FRAMES = st.sampled_from(
    [
        "```python {name}\n{text}```",
        '```python file="{name}"\n{text}```',
        "**`{name}`**\n```\n{text}```",
        "### `{name}`\n\n~~~~\n{text}~~~~",
        "File: `{name}`\n```text\n{text}```",
        "1. First\n\n   ```python {name}\n{text}   ```",
        "```python {name}\n{text}",
        "````{name}\n{text}````",
        "```diff {name}\n@@ -1 +1 @@\n-not there\n+{text}```",
        "```python {name}\n<<<<<<< SEARCH\nnot there\n=======\n{text}>>>>>>> REPLACE\n```",
        "```python a.py::nothing\n{text}```\n`{name}`:\n```\n{text}```",
    ]
)
PROSE = st.sampled_from(
    [
        "",
        "Sure!\n\n",
        "F1: fixed, **so**\n",
        "> quoted\n\n",
        "It prints:\n```text\n1\n```\n",
        "`inline` ``x``\n\n---\n",
    ]
)
BLOCK = st.tuples(PROSE, FRAMES, NAMES, st.one_of(SOUND, HALF))


def as_reply(blocks: list[tuple[str, str, str, str]]) -> str:
    return "\n\n".join(prose + frame.format(name=name, text=text) for prose, frame, name, text in blocks)


async def sent(
    reply: str, blobs: MemoryBlobs, refused: ReplyRefused | None = None
) -> tuple[CodeFile, ...] | Refusal:
    state = chat([*planned(), TurnOpened(speaker="coder")])
    return await files_sent(state, reply, blobs, refused, parses=True)


@settings(max_examples=500, derandomize=True)
@given(st.lists(BLOCK, min_size=1, max_size=4))
async def test_each_file_is_taken_whole_kept_or_named(blocks: list[tuple[str, str, str, str]]) -> None:
    blobs = MemoryBlobs()
    read = await sent(as_reply(blocks), blobs)
    files = () if isinstance(read, Refusal) else read
    kept = await texts_of(read.kept, blobs) if isinstance(read, PartRefused) else {}
    texts = {**kept, **{file.path: file.text for file in files}}
    reason = read.reason if isinstance(read, Refusal) else ""
    prose = "".join(text for path, text in texts.items() if path.endswith(".md"))  # blocks are at home there
    for _, _, name, _ in blocks:
        words = name.split("/")[-1].split()
        assert name in texts or all(word in reason + prose for word in words), reason
    for file in files:
        assert_whole(file)


def assert_whole(file: CodeFile) -> None:
    if file.path.endswith(".py"):
        ast.parse(file.text)
        assert not re.search(r"rest of the code|existing code|^\s*\.\.\.$", file.text, re.MULTILINE)


@settings(max_examples=100, derandomize=True)
@given(st.lists(BLOCK, min_size=1, max_size=3), st.sampled_from(["send", "leave out"]))
async def test_the_next_reply_brings_only_what_is_missing(
    blocks: list[tuple[str, str, str, str]], answer: str
) -> None:
    blobs = MemoryBlobs()
    first = await sent(as_reply(blocks), blobs)
    if not isinstance(first, PartRefused):
        return
    refused = ReplyRefused(role="coder", reason=first.reason, kept=first.kept, missing=first.missing)
    silent = await sent("Done.", blobs, refused)
    assert isinstance(silent, Refusal) == bool(first.missing or not first.kept)
    again = "\n".join(f'```text file="{name}"\nz = 3\n```' for name in first.missing)
    left = "\n".join(f"left out: {name}" for name in first.missing)
    second = await sent(again if answer == "send" else left, blobs, refused)
    wanted = {file.path for file in first.kept} | (set(first.missing) if answer == "send" else set[str]())
    if wanted:
        assert not isinstance(second, Refusal), second
        assert {file.path for file in second} == wanted


ITEMS: Mapping[str, str] = {
    "1. add two numbers": "add two numbers",
    "1) **add** two numbers": "add two numbers",
    "**1. add two numbers**": "add two numbers",
    "### 1. add two numbers": "add two numbers",
    "- 1. add two numbers": "add two numbers",
    "1. add\n   two numbers": "add two numbers",
    "1. add two numbers:\n   - whole ones\n   - others": "add two numbers: whole ones; others",
}
CHECKS = (
    "   check: tests test_a.py::test_b",
    "   - check: tests test_a.py::test_b",
    "   **check:** `tests test_a.py::test_b`",
    "   check: tests `test_a.py::test_b`",
    "   * Check: **tests test_a.py::test_b**",
    "   checks:\n   - tests test_a.py::test_b\n   - `file out.txt`",
    "   - **Check**: tests test_a.py::test_b\n   - **Check**: file out.txt",
)
OUTER = (
    "{}",
    "```\n{}\n```",
    "```markdown\n{}\n```",
    "Here is the plan:\n\n{}\n\nShall I go on?",
    "~~~text\n{}\n~~~\n",
)


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("item", ITEMS)
def test_a_plan_in_any_natural_form(item: str, check: str, outer: str) -> None:
    plan = parse_plan(outer.format(f"{item}\n{check}\n\n2. more\n   check: judged\nrun: `python a.py`"))
    assert not isinstance(plan, Refusal), plan
    texts = [one.text for one in plan.items]
    assert set(texts) == {ITEMS[item], "more"}
    shown = plan_text(plan)
    assert re.search(r"check(?: P1)?: tests test_a.py::test_b\n", shown)
    assert (re.search(r"check(?: P2)?: file out.txt", shown) is not None) == ("out.txt" in check)
    assert plan.run == "python a.py"
    assert parse_plan(shown) == plan


def test_code_is_no_plan() -> None:
    reply = parse_plan("1. add\n   check: judged\n\n```python a.py\nx = 1\n```\n")
    assert isinstance(reply, Refusal)
    assert "no code blocks" in reply.reason


FINDING = "the total leaves out the first price"
FINDINGS = (
    "- [must] P2 (shop.py:3): {}",
    "- F1 [must] P2 (shop.py:3): {}",
    "* **F1** [must] P2 (`shop.py:3`): {}",
    "1. **[must]** P2 (`shop.py:3`) – {}",
    "- `[must]` **P2** (shop.py:3): {}",
    "- **[must] P2 (shop.py:3):** {}",
    "  - [Must] P2 (shop.py:3) {}",
)
VERDICTS = (
    "verdict: revise",
    "**Verdict:** revise",
    "## Verdict\n\nrevise",
    "Verdict — **Revise**",
    "`verdict: revise`",
    "Nearly there! **Verdict: revise**",
)


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_review_in_any_natural_form(verdict: str, finding: str, outer: str) -> None:
    words = finding.format(FINDING) + "\n    - so [1, 2] gives 2\n    and not 3"
    review = parse_review(outer.format(f"{verdict}\n\n{words}\n- [nice] P1: a docstring"))
    assert not isinstance(review, Refusal), review
    assert review.verdict == "revise"
    first, second = review.findings
    assert (first.severity, first.item, first.evidence) == ("must", "P2", "shop.py:3")
    assert first.text == f"{FINDING} - so [1, 2] gives 2 and not 3"
    assert second.text == "a docstring"


def test_who_accepts_and_demands_is_asked_what_it_means() -> None:
    review = parse_review(f"verdict: accept\n- [must] P2 (shop.py:3): {FINDING}")
    assert isinstance(review, Refusal)
    assert "accept" in review.reason
    assert "must" in review.reason
    assert not isinstance(parse_review("verdict: accept\n- [should] P2: shorter"), Refusal)


@given(st.text(max_size=200), st.sampled_from(["", "verdict: accept\n", "1. do\n", "- [must] P1: "]))
def test_any_text_is_read_or_refused(text: str, head: str) -> None:
    for read in (parse_plan(head + text), parse_review(head + text)):
        assert isinstance(read, Refusal | Plan) or read.verdict in ("accept", "revise")
