"""The prompts of coder and manager: their role, the task, and as much of the conversation as fits."""

import ast
from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

from septet.common.text import pluralize
from septet.domain.events import (
    MemberBriefed,
    ModelAnswered,
    PersonSpoke,
    RunFinished,
    ToolAnswered,
    ToolCalled,
)
from septet.domain.messages import Message
from septet.domain.plans import Refusal, check_text
from septet.domain.replies import code_blocks
from septet.domain.runs import CONTROLS
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.team.briefing import (
    Sources,
    edited_files_section,
    environment_section,
    example_section,
    run_section,
)
from septet.team.evidence import evidence_report
from septet.ways.prompts import prompt_text

LONGEST = 160


def merge_definitions(sources: Iterable[str]) -> list[str]:
    """Functions, classes and constants of all sources, in order; of a name, the newest definition."""
    found: dict[str, str] = {}
    for source in sources:
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for name, text in module_definitions(tree):
            found.pop(name, None)
            found[name] = text[:LONGEST]
    return list(found.values())


def module_definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, function_signature(node)
            case ast.ClassDef(name=name, body=body):
                methods = [
                    one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                yield name, f"class {name}: {', '.join(methods)}".rstrip(": ")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, f"{name} = {ast.unparse(value)}"
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, ast.unparse(node)
            case _:
                continue


def function_signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    said = (ast.get_docstring(node) or "").split("\n")[0]
    return f"def {node.name}({ast.unparse(node.args)}){returns}" + (f": {said}" if said else "")


MOST_DEFINITIONS = 60
LONGEST_TALK = 24_000
"""Characters of the conversation in a prompt; the prompt says what was left out."""

FORGET = "# restart the kernel"
"""The first line of code that restarts the kernel; the prompt `coder.cells` names it."""
PACKAGE = "septet.ways.pair"

Spoken = ModelAnswered | PersonSpoke | RunFinished | ToolCalled | ToolAnswered


def pair_briefing(member: RoleSpec, state: State, sources: Sources) -> tuple[Message, ...]:
    """The member's role prompt, then the task and as much of the conversation as fits."""
    parts = [
        f"# Task\n{state.goal}",
        environment_section(state),
        *conversation_lines(state),
        *task_checks_section(state),
        *edited_files_section(state, sources),
        *example_section(state),
    ]
    if refused := state.talk.refusal_of(member.name):
        parts.append(f"# Your last message could not be used\n{refused.reason}")
    kernel = member.role == "coder" and state.team.run == "cells"
    cells = prompt_text(PACKAGE, "coder.cells") if kernel else ""
    head = "\n".join(filter(None, [prompt_text(PACKAGE, member.role), cells, member.instructions]))
    return (Message(role="system", text=head), Message(role="user", text="\n\n".join(parts)))


def is_control(said: Spoken) -> bool:
    return isinstance(said, RunFinished) and said.purpose in CONTROLS


def task_checks_section(state: State) -> list[str]:
    """The results of the checks in the manager's task."""
    lines = [
        f"- {line.item.id} {check_text(line.item.check)}: {'met' if line.is_met else 'NOT met'}, {line.detail}"
        for line in evidence_report(state)
    ]
    return ["\n".join(["# The checks of the task", *lines])] if state.work.evidence else []


def conversation_lines(state: State) -> list[str]:
    """All messages; of a long chat the step plan, the done steps, definitions, and the newest messages."""
    said = [
        (one, message_text(one))
        for one in state.talk.messages
        if not isinstance(one, MemberBriefed | ToolCalled | ToolAnswered) and not is_control(one)
    ]
    texts = [text for _, text in said]
    if sum(map(len, texts)) <= LONGEST_TALK:
        return texts
    start = next((place for place, (one, _) in enumerate(said) if is_plan(one)), 0) + 1
    if start >= len(texts):
        return texts
    room = LONGEST_TALK - sum(map(len, texts[:start]))
    lengths = accumulate(map(len, reversed(texts[start:])))
    recent = max(1, sum(1 for _ in takewhile(lambda length: length <= room, lengths)))
    return [
        *texts[:start],
        omitted_summary([one for one, _ in said[start : len(said) - recent]]),
        *texts[-recent:],
    ]


def is_plan(one: Spoken) -> bool:
    return isinstance(one, ModelAnswered) and one.role == "coder"


def omitted_summary(messages: list[Spoken]) -> str:
    """A summary of the messages that are left out: the done steps, and the definitions in the code."""
    done = [one.command for one in messages if isinstance(one, RunFinished) and one.result.succeeded]
    said = [
        code_blocks(one.answer.text) for one in messages if is_plan(one) and isinstance(one, ModelAnswered)
    ]
    code = [block.text for blocks in said if not isinstance(blocks, Refusal) for block in blocks]
    known = merge_definitions(code)[-MOST_DEFINITIONS:]
    lines = [
        f"… {pluralize(len(messages), 'message')} left out; what ran well in them:",
        *bullet_lines(dict.fromkeys(done)),
    ]
    return "\n".join([*lines, *(["what the code in them defines:", *bullet_lines(known)] if known else [])])


def bullet_lines(lines: Iterable[str]) -> list[str]:
    return [f"- {line}" for line in lines]


def message_text(one: Spoken) -> str:
    if isinstance(one, ModelAnswered):
        return f"## {one.role}\n{one.answer.text}"
    if isinstance(one, RunFinished):
        return f"## runner\n{run_section(one)}"
    return f"## person\n{one.text}" if isinstance(one, PersonSpoke) else ""
