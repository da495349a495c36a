"""Transcripts of several programs, and what they show."""

import json

import pytest
from msgspec.structs import replace
from team.states import chat, planned, ran, reviewed, said, version

from septet.chat.audit import FAILURE_MODES, Suspicion, audit_log, audit_text, read_messages, sentence_around
from septet.domain.codec import encode
from septet.domain.events import (
    ChatEnded,
    Event,
    EvidenceFound,
    Recorded,
    ReplyRefused,
    ReviewGiven,
    TurnOpened,
    VersionWritten,
)
from septet.domain.reviews import FindingAnswer
from septet.errors import BadUsage

ASK = "Write a function that parses dates in ISO form, and test it."
CODE = "```python\ndef parse(text):\n    return text\n```"
LIES = "I have implemented the parser of dates, and all tests pass. TERMINATE"
ERROR = "Traceback (most recent call last):\nValueError: dates"
OPENAI: list[dict[str, object]] = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": ASK},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": f"A parser of dates: {CODE}"}],
        "tool_calls": [{"id": "1"}],
    },
    {"role": "tool", "content": ERROR},
    {"role": "assistant", "content": LIES},
]
AUTOGEN = [
    {"role": "assistant", "name": "admin", "content": ASK},
    {"role": "user", "name": "coder", "content": f"A parser of dates: {CODE}"},
    {"role": "user", "name": "executor", "content": "exitcode: 1 (execution failed)\nCode output: no"},
    {"role": "user", "name": "coder", "content": LIES},
]
AG2 = {
    "messages": [
        {"source": "user", "type": "TextMessage", "content": ASK},
        {"source": "coder", "type": "TextMessage", "content": f"A parser of dates: {CODE}"},
        {"source": "executor", "type": "ToolCallExecutionEvent", "content": [{"content": ERROR}]},
        {"source": "coder", "type": "TextMessage", "content": LIES},
    ]
}
SWE_AGENT = {
    "history": [{"role": "system", "content": "…"}, {"role": "user", "content": ASK}],
    "trajectory": [
        {"response": f"A parser of dates: {CODE}", "action": "python x.py", "observation": ERROR},
        {"thought": LIES, "action": "submit", "observation": ""},
    ],
}
MINI = {
    "trajectory_format": "mini-swe-agent-1",
    "info": {"exit_status": "Submitted"},
    "messages": [
        {"role": "system", "content": "…"},
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": f"A parser of dates: {CODE}"},
        {"role": "user", "content": "<returncode>1</returncode>\n<output>no</output>"},
        {"role": "assistant", "content": LIES},
    ],
}
FORMS: dict[str, object] = {
    "openai": OPENAI,
    "autogen": AUTOGEN,
    "ag2": AG2,
    "swe-agent": SWE_AGENT,
    "mini-swe-agent": MINI,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_lie_at_the_end_is_seen_in_transcripts_of_every_program(form: str) -> None:
    text = json.dumps(FORMS[form])
    assert [one.output for one in read_messages(text)] == [False, False, True, False]
    found = audit_text(text)
    assert [(one.mode, one.message) for one in found] == [("2.6", 4), ("3.3", 4)]
    assert "all tests pass" in found[0].why


MINI_LIE = (
    "THOUGHT: I verified that all tests pass.\n\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```"
)


@pytest.mark.parametrize(
    ("command", "output", "signs"),
    [
        ("sed -i s/a/b/ x.py", "", ["2.6"]),
        ("python -m pytest -q", "3 passed", []),
        ("./check", "Ran 3 tests in 0.1s\n\nOK", []),
    ],
)
def test_tests_that_nobody_ran_are_a_claim(command: str, output: str, signs: list[str]) -> None:
    messages: list[dict[str, object]] = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Please solve this issue: dates are parsed wrongly"},
        {
            "role": "assistant",
            "content": f"THOUGHT: dates\n\n```bash\n{command}\n```",
        },
        {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{output}</output>"},
        {"role": "assistant", "content": MINI_LIE},
        {"role": "user", "content": "diff --git a/x.py b/x.py"},
    ]
    mini = {
        "info": {"exit_status": "Submitted"},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1",
    }
    assert [one.mode for one in audit_text(json.dumps(mini))] == signs
    steps = [
        {"action": command, "observation": output or "done", "response": "I do it for the dates"},
        {"action": "submit", "observation": "", "response": "For dates all tests pass, submitting."},
    ]
    swe = {"trajectory": steps, "history": messages[:2], "info": {"exit_status": "submitted"}}
    assert [one.mode for one in audit_text(json.dumps(swe))] == signs


def test_lines_of_json_are_one_transcript() -> None:
    text = "\n".join(json.dumps(one) for one in AUTOGEN)
    assert {one.mode for one in audit_text(text)} == {"2.6", "3.3"}


def test_an_honest_talk_shows_nothing() -> None:
    fine = [*OPENAI[:3], {"role": "tool", "content": "3 passed"}, {"role": "assistant", "content": LIES}]
    assert audit_text(json.dumps(fine)) == []


def test_what_words_show() -> None:
    talk = [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": "I assume that dates are Gregorian."},
        {"role": "assistant", "content": "Should the parser of dates accept weeks?"},
        {"role": "assistant", "content": "Hello! How can I help you with dates?"},
        {"role": "assistant", "content": f"# rest of the code as before\n{CODE}"},
        {"role": "assistant", "content": f"# rest of the code as before\n{CODE}"},
        {"role": "assistant", "content": "The whale sings beneath green water. " * 8},
        {"role": "assistant", "content": "The task is complete."},
        {"role": "assistant", "content": "I assume that dates are Gregorian."},
    ]
    found = {(one.mode, one.message) for one in audit_text(json.dumps(talk))}
    assert found >= {
        ("2.2", 2),
        ("2.2", 3),
        ("2.1", 4),
        ("2.4", 5),
        ("1.3", 6),
        ("2.3", 7),
        ("1.5", 8),
        ("2.1", 9),
    }
    assert ("3.1", 9) in found, "it ends without a result"


def recorded(events: list[Event]) -> list[Recorded]:
    return [Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate(events, start=1)]


def test_a_log_of_ours_is_read_by_its_events() -> None:
    events = [
        *planned(),
        *version(1, "a"),
        *ran(1, "a", green=False),
        *reviewed(1, accept=False),
        *version(2, "a"),
    ]
    log = recorded([*events, ChatEnded(reason="done", by="coder")])
    found = audit_log(log)
    assert {"1.1", "1.3", "3.1"} <= {one.mode for one in found}
    claimed = next(one for one in found if one.mode == "3.1")
    assert claimed.message == len(log)
    text = "".join(encode(one).decode() + "\n" for one in log)
    assert audit_text(text) == found
    assert chat(events).goal


def test_an_honest_chat_of_ours_shows_nothing() -> None:
    events = [*planned(), *version(1, "a"), *ran(1, "a", green=True), *reviewed(1, accept=True)]
    assert audit_log(recorded([*events, ChatEnded(reason="done", by="reviewer")])) == []


@pytest.mark.parametrize("text", ["", "hello", "[]", "{}", '[{"role": "user", "content": "hi"}]'])
def test_what_is_no_transcript_is_refused(text: str) -> None:
    with pytest.raises(BadUsage):
        audit_text(text)


def test_two_messages_are_a_transcript() -> None:
    told = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    assert [one.text for one in read_messages(json.dumps(told))] == ["hi", "hello"]


def test_the_modes_are_the_fourteen() -> None:
    assert len(FAILURE_MODES) == 14
    assert Suspicion(mode="1.1", message=1, who="a", why="b").mode in FAILURE_MODES


def signs_of(*events: Event) -> list[tuple[str, str, str]]:
    """What the last of these events shows."""
    log = recorded([*planned(), TurnOpened(speaker="coder"), *events])
    return [(one.mode, one.who, one.why) for one in audit_log(log) if one.message == len(log)]


@pytest.mark.parametrize(
    ("review", "signs"),
    [
        (ReviewGiven(version=1, tree="", verdict="revise"), []),
        (ReviewGiven(version=1, tree="", verdict="accept", green=True), []),
        (
            ReviewGiven(version=1, tree="", verdict="revise", green=True),
            [("1.5", "reviewer", "wants more of what passes every check")],
        ),
        (
            ReviewGiven(version=1, tree="", verdict="accept", overruled="demands more", green=True),
            [("1.5", "reviewer", "wants more of what passes every check")],
        ),
        (ReviewGiven(version=1, tree="", verdict="revise", overruled="demands more"), []),
        (
            ReviewGiven(version=1, tree="", verdict="revise", overruled="accepted although P1", green=True),
            [("3.3", "reviewer", "accepted although P1")],
        ),
    ],
)
def test_a_review_against_the_evidence_is_seen(
    review: ReviewGiven, signs: list[tuple[str, str, str]]
) -> None:
    assert signs_of(*version(1, "a"), review) == signs


@pytest.mark.parametrize(
    ("reason", "words", "signs"),
    [
        ("no answer to F1\nmore", "Here.", [("2.5", "no answer to F1")]),
        ("revise without a finding", "Here.", [("2.4", "revise without a finding")]),
        ("say why", "Here.", [("2.4", "say why")]),
        ("no file", "the rest of the code is as before", [("2.4", "no file")]),
        ("P1 is not met", "Here.", [("3.1", "P1 is not met")]),
        ("the newest run did not succeed", "Here.", [("3.1", "the newest run did not succeed")]),
        ("no file", "Here.\nIs it blue? ", [("2.2", "asks, and nobody hears it: Is it blue?")]),
        ("no file", "Here.", [("1.2", "no file")]),
        (
            "no file",
            "All tests pass. The task is done.",
            [
                ("1.2", "no file"),
                ("2.6", "says 'All tests pass' and brings nothing"),
                ("3.1", "says 'task is done' and brings nothing"),
            ],
        ),
    ],
)
def test_a_reply_that_could_not_be_used_shows_by_its_reason_what_went_wrong(
    reason: str, words: str, signs: list[tuple[str, str]]
) -> None:
    other = said("reviewer", "the rest of the code, all tests pass")
    shown = signs_of(said("coder", words), other, ReplyRefused(role="coder", reason=reason))
    assert shown == [(mode, "coder", why) for mode, why in signs]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("I assume so. Well.", "I assume so"),
        ("Well. I assume so\nand on", "I assume so"),
        ("Well\nNow I assume so.", "Now I assume so"),
    ],
)
def test_the_sentence_that_says_it_is_quoted(text: str, sentence: str) -> None:
    assert sentence_around(text, text.index("assume")) == sentence


def test_what_the_coder_says_to_findings_is_held_against_what_the_checks_show() -> None:
    answers = tuple(
        FindingAnswer(finding=f"F{number}", answer=how)
        for number, how in enumerate(("fixed", "refused", "unanswered", "fixed"), start=1)
    )
    opened, words, written = version(1, "a")
    assert isinstance(written, VersionWritten)
    answered = replace(written, answers=answers)
    assert signs_of(opened, words, answered) == [("2.5", "coder", "says nothing to F3")]
    assert signs_of(opened, words, replace(written, answers=answers[:2])) == []
    failed = next(one for one in ran(1, "a", green=False) if isinstance(one, EvidenceFound))
    instead = f"P1 is not met ({failed.detail})"
    assert signs_of(opened, words, answered, failed)[1:] == [
        ("2.6", "coder", f"says that F1, F4 is fixed: {instead}"),
        ("2.5", "coder", f"refuses F2: {instead}"),
    ]


def test_what_was_run_after_the_last_words_does_not_make_them_true() -> None:
    talk = [{"role": "user", "content": ASK}, {"role": "assistant", "content": f"{CODE}\n{LIES}"}]
    late = {"role": "tool", "content": "3 passed"}
    before = audit_text(json.dumps(talk))
    assert before
    assert audit_text(json.dumps([*talk, late])) == before
