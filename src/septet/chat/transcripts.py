"""Transcripts of several programs as lists of messages: AutoGen and AG2, OpenAI, SWE-agent and mini-swe-agent. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

import msgspec

from septet.chat.audit import Said, Suspicion, audit_log, audit_messages
from septet.domain.codec import decode
from septet.errors import BadUsage

FORMS = (
    "a log of Septet, a list of messages (OpenAI, AutoGen, AG2), or a trajectory (SWE-agent, mini-swe-agent)"
)
OUTPUTS = ("tool", "function", "observation", "environment", "user_proxy_output")
EXIT = re.compile(
    r"<returncode>\s*(?P<code>-?\d+)\s*</returncode>|exitcode: (?P<other>\d+)|exit code:? (?P<last>\d+)"
)
ERROR = re.compile(
    r"Traceback \(most recent call last\)|^\w*(?:Error|Exception):|^FAILED |\b[1-9]\d* failed\b", re.MULTILINE
)

Object = Mapping[str, object]


def audit_text(text: str) -> list[Suspicion]:
    """What a transcript shows, whatever program wrote it. Raises BadUsage for what is none."""
    if '"type":"septet.' in text[:2000].replace(" ", ""):
        return audit_log(
            [decode(line) for line in text.splitlines() if '"type":"septet.' in line.replace(" ", "")]
        )
    return audit_messages(read_messages(text))


def read_messages(text: str) -> list[Said]:
    documents = list(documents_of(text))
    found = [message for document in documents for message in messages_in(document)]
    if len(found) < 2:
        raise BadUsage("that is no transcript", f"give {FORMS}")
    return found


def documents_of(text: str) -> Iterator[object]:
    """One JSON document, or one a line."""
    try:
        yield msgspec.json.decode(text)
    except msgspec.DecodeError:
        for line in filter(str.strip, text.splitlines()):
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise BadUsage(f"that is no JSON ({error})", f"give {FORMS}") from error


def messages_in(document: object) -> Iterator[Said]:
    if is_list(document):
        for one in document:
            yield from messages_in(one) if is_object(one) and holds_messages(one) else message_of(one)
        return
    if not is_object(document):
        return
    if is_list(steps := document.get("trajectory")):
        yield from task_of(document)
        for step in steps:
            yield from step_messages(step)
    elif is_list(messages := document.get("messages", document.get("chat_history", document.get("history")))):
        own = "trajectory_format" in document or "exit_status" in str(document.get("info", ""))
        yield from (as_output(one) for one in observed(messages_in(messages), own))
    else:
        yield from message_of(document)


def holds_messages(one: Object) -> bool:
    return any(is_list(one.get(key)) for key in ("messages", "chat_history", "history", "trajectory"))


def observed(messages: Iterator[Said], own: bool) -> Iterator[Said]:
    """In trajectories the user's messages after the task are what commands have answered."""
    asked = False
    for one in messages:
        is_output = own and one.who == "user" and asked
        asked = asked or one.who == "user"
        yield Said(who="environment", text=one.text, output=True) if is_output else one


def as_output(one: Said) -> Said:
    return Said(who=one.who, text=one.text, output=True, failed=has_failed(one.text)) if one.output else one


def task_of(document: Object) -> Iterator[Said]:
    """What a trajectory was about: its history has it, where there is one."""
    history = document.get("history")
    said = list(messages_in(history)) if is_list(history) else []
    yield next(
        (one for one in said if one.who == "user"),
        Said(who="user", text=str(document.get("problem_statement", "the task"))),
    )


def step_messages(step: object) -> Iterator[Said]:
    """A step of a trajectory: what the agent says and does, and what comes of it."""
    if not is_object(step):
        return
    words = step.get("response") or f"{step.get('thought', '')}\n{step.get('action', '')}"
    yield Said(who="agent", text=text_of(words))
    if observation := text_of(step.get("observation", "")):
        yield Said(who="environment", text=observation, output=True, failed=has_failed(observation))


def message_of(one: object) -> Iterator[Said]:
    if not is_object(one):
        return
    role, name = str(one.get("role") or ""), str(one.get("name") or one.get("source") or "")
    text = text_of(one.get("content"))
    if role == "system" or not (role or name):
        return
    kind = str(one.get("type") or one.get("message_type") or "")
    output = role in OUTPUTS or name in OUTPUTS or "ExecutionEvent" in kind or text.startswith("exitcode:")
    if text or one.get("tool_calls"):
        yield Said(who=name or role, text=text, output=output, failed=output and has_failed(text))


def text_of(content: object) -> str:
    """The text of a message, of its parts, or of what a tool has answered."""
    if is_list(content):
        return "\n".join(filter(None, map(text_of, content)))
    if is_object(content):
        return text_of(content.get("text") or content.get("content") or "")
    return content if isinstance(content, str) else ""


def has_failed(text: str) -> bool:
    code = EXIT.search(text)
    if code is not None:
        return next(filter(None, code.groups())) != "0"
    return ERROR.search(text) is not None


def is_list(one: object) -> TypeGuard[Sequence[object]]:
    return isinstance(one, list)


def is_object(one: object) -> TypeGuard[Object]:
    return isinstance(one, dict)
