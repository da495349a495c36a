"""Models with manners of their own, over the wire: one that is sloppy in every way, and one that cannot wait."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenarios.autocoder.playing import home_in

from septet.domain.events import ChatEnded, Event, ModelAnswered, ReplyRefused, VersionWritten
from septet.testing.replies import ReceivedRequest, Reply, Script
from septet.testing.server import serve_mock
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio

TEST = """```python test_count.py
from count import words


def test_words():
    assert words("a b c") == 3
    assert words("") == 0
```"""
DIFF = """F1: fixed, a hyphen parts words, too

```diff
--- a/count.py
+++ b/count.py
@@ -1,2 +1,2 @@
 def words(text):
-    return len(text.split())
+    return len(text.replace("-", " ").split())
```"""
SLOPPY: dict[str, list[Reply]] = {
    "planner": [
        Reply(
            text="<think>A plan. 1. maybe?</think>\nHere:\n\n```markdown\n**1. count words:**\n   - of a text\n"
            "   - **Check:** `tests test_count.py`\n   - check: example count.words('a b') => 2\n```\nShall I go on?"
        )
    ],
    "coder": [
        Reply(
            text="<think>Easy.</think>Sure!\n\n**count.py**\n```python\ndef words(text):\n    retu",
            stop="length",
        ),
        Reply(
            text="    return len(text.split())\n```\n\n```python test_count.py\nfrom count import words\n\n\n"
            "def test_words():\n    # ... rest of the tests here\n    pass\n```"
        ),
        Reply(text=f"Sorry, here are the tests:\n\n{TEST}"),
        Reply(text=f"<think>\nWhat was it?\n</think>\n{DIFF}"),
    ],
    "reviewer": [
        Reply(
            text="**Verdict:** revise\n\n1. **[must]** P1 (`count.py:2`) – *a-b* are two words\n   - it counts one"
        ),
        Reply(text="The first line is fine.\n</think>\n\n## Verdict\n\naccept"),
    ],
}
IMPATIENT: dict[str, list[Reply]] = {
    "planner": [Reply(text="1. count words\n   check: tests test_count.py")],
    "coder": [Reply(text=f"```python count.py\ndef words(text):\n    return len(text.split())\n```\n{TEST}")],
    "reviewer": [Reply(text="verdict: accept")],
}


def script_of(replies: dict[str, list[Reply]]) -> Script:
    left = {role: list(said) for role, said in replies.items()}

    def reply(seen: ReceivedRequest) -> Reply:
        body = seen.body.decode()
        role = next(role for role in left if f"You are the {role} of a small software team" in body)
        return left[role].pop(0)

    return reply


async def play(
    folder: Path, replies: dict[str, list[Reply]], form: str
) -> tuple[list[Event], Sequence[ReceivedRequest]]:
    (folder / "work").mkdir()
    members = tuple(
        replace(one, form=form) if one.role in replies else one for one in TEAMS["iterate"].members
    )
    async with serve_mock(script_of(replies)) as server, open_session(home_in(folder)) as session:
        team = replace(TEAMS["iterate"], members=members, approve="auto")
        await session.start("count words", with_model(team, f"url:{server.url}#mock"), folder / "work", "c")
        events = [one.event async for one in session.perform("c", await session.sandbox())]
        return events, server.seen


def lines_of(answer: str) -> int:
    return len(answer.splitlines())


async def test_a_sloppy_model_gets_there(tmp_path: Path) -> None:
    events, seen = await play(tmp_path, SLOPPY, "text")
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]
    assert len(seen) == sum(map(len, SLOPPY.values()))
    said = [event.answer for event in events if isinstance(event, ModelAnswered)]
    assert not any("think>" in answer.text for answer in said)
    assert said[1].reasoning == "Easy."
    (refused,) = [event for event in events if isinstance(event, ReplyRefused)]
    assert [file.path for file in refused.kept] == ["count.py"]
    assert refused.missing == ("test_count.py",)
    first, second = [event for event in events if isinstance(event, VersionWritten)]
    assert [file.path for file in first.files] == ["count.py", "test_count.py"]
    assert (tmp_path / "work/count.py").read_text().count('replace("-", " ")') == 1
    assert lines_of(said[-2].text) <= 2 * 1 + 12
    assert [answer.answer for answer in second.answers] == ["fixed"]


@pytest.mark.parametrize("form", ["text", "tools"])
async def test_an_impatient_model_gets_there_at_once(tmp_path: Path, form: str) -> None:
    events, seen = await play(tmp_path, IMPATIENT, form)
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]
    assert len(seen) == 3


FINDINGS = "verdict: revise\n- [must] P1 (count.py:2): a hyphen\n- [should] P1 (count.py:1): a longer name"


@pytest.mark.parametrize("form", ["text", "tools"])
async def test_answers_to_findings_that_come_in_two_replies_both_count(tmp_path: Path, form: str) -> None:
    second = DIFF.partition("```")[1] + DIFF.partition("```")[2] if form == "tools" else ""
    forgetful = {
        **IMPATIENT,
        "coder": [
            *IMPATIENT["coder"],
            Reply(text=DIFF),
            Reply(text=f"F2: refused, because it is clear\n\n{second}"),
        ],
        "reviewer": [Reply(text=FINDINGS), *IMPATIENT["reviewer"]],
    }
    events, _ = await play(tmp_path, forgetful, form)
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]
    newest = [event for event in events if isinstance(event, VersionWritten)][-1]
    assert [(one.finding, one.answer) for one in newest.answers] == [("F1", "fixed"), ("F2", "refused")]
    assert 'replace("-", " ")' in (tmp_path / "work/count.py").read_text()
