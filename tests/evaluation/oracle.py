"""A model that knows the answers, in each way of working, and that answers badly at first where it is told to."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.messages import ToolCall
from septet.domain.teams import MemberSettings, TeamSettings
from septet.evaluation.suites import EvalTask
from septet.team.goal_examples import StatedExample, condition_of, stated_examples
from septet.testing.replies import ReceivedRequest, Reply, Script
from septet.ways.table import TEAMS

TEAM = """\
name: helped
members:
  - {role: planner, form: small}
  - {role: coder, form: small, candidates: 4}
  - {role: runner}
  - {role: reviewer, form: small}
"""

Fault = Literal["none", "wrong", "prose", "diff", "fence", "time-out", "kill"]
"""What goes wrong: the first program is wrong; prose, bold and thoughts around each reply; a wrong program first and
then its correction as a difference; of each member's first reply the end is missing; the first request of each member
is answered too late; `kill` is done from outside.
"""
FAULTS: tuple[Fault, ...] = get_args(Fault)
LATE, PATIENCE = 20.0, 4.0
"""Seconds after which the late reply comes, and that a member waits for one."""


def oracle(tasks: list[EvalTask], wrong: dict[str, str] | None = None) -> Script:
    """Says the solution of whatever it is asked for, in the small form; `wrong` are other programs for some tasks."""
    programs = {task.id: task.solution for task in tasks} | (wrong or {})

    def answer(seen: ReceivedRequest) -> Reply:
        task = task_of(tasks, said_in(seen))
        if "response_format" in seen.fields:
            return Reply(text=f'{{"file": "{task.entry}.py", "kind": "function", "examples": []}}', piece=200)
        return Reply(text=f"```python\n{programs[task.id]}```\n", piece=500)

    return answer


def said_in(seen: ReceivedRequest) -> str:
    return "\n".join(str(one.get("content", "")) for one in seen.messages)


def task_of(tasks: Sequence[EvalTask], said: str) -> EvalTask:
    """The task whose goal stands there; goals may be the beginning of others."""
    return max((one for one in tasks if one.goal in said), key=lambda one: len(one.goal))


class Asked(Value):
    """What a member is asked, and what of it has been said before."""

    task: EvalTask
    fault: Fault
    module: str
    number: int
    """How many programs the member has sent for this task."""
    written: bool
    """Whether anybody has sent one."""
    results: tuple[str, ...]
    """What tools answered in the member's own thread."""

    @property
    def program(self) -> str:
        if self.number or self.fault not in ("wrong", "diff"):
            return self.task.solution
        return f"def {self.task.entry}(*arguments):\n    return None\n"

    @property
    def correction(self) -> tuple[str, str] | None:
        """What stands there, and what shall."""
        if not self.number or self.fault != "diff":
            return None
        return replace(self, number=0).program, self.task.solution

    @property
    def examples(self) -> list[StatedExample]:
        return [one for one in stated_examples(self.task.goal) if one.left == one.call]

    @property
    def tests(self) -> str:
        lines = [f"    assert {condition_of(one)}" for one in self.examples]
        return f"from {self.module} import {self.task.entry}\n\n\ndef test_it():\n" + "\n".join(lines) + "\n"

    @property
    def checks(self) -> list[str]:
        return [f"check: example {self.module}.{one.call} => {one.right}" for one in self.examples]


class AllWaysOracle:
    """Plays every member of every way."""

    def __init__(self, tasks: Sequence[EvalTask], fault: Fault = "none") -> None:
        self._tasks = tasks
        self._fault: Fault = fault
        self._programs = Counter[tuple[str, str]]()
        self._spoiled: set[tuple[str, str]] = set()

    def __call__(self, seen: ReceivedRequest) -> Reply:
        said = said_in(seen)
        task, member = task_of(self._tasks, said), member_of(seen)
        key = task.id, member
        results = [str(one["content"]) for one in seen.messages if one["role"] == "tool"]
        asked = Asked(
            task=task,
            fault=self._fault,
            module="main" if "main.py" in said or member == "code assistant" else "solution",
            number=self._programs[key],
            written=any(one == task.id for one, _ in self._programs),
            results=tuple(results),
        )
        reply = MEMBERS[member](asked)
        if any("def " in text for text in (reply.text, *(one.arguments for one in reply.calls))):
            self._programs[key] += 1
        return self._spoil(key, replace(reply, piece=500))

    def _spoil(self, key: tuple[str, str], reply: Reply) -> Reply:
        if self._fault == "prose":
            return replace(reply, text=BEFORE + reply.text + AFTER if reply.text else "")
        if key in self._spoiled or self._fault not in ("fence", "time-out"):
            return reply
        if self._fault == "time-out":
            self._spoiled.add(key)
            return replace(reply, delay=LATE)
        if reply.calls or "```" in reply.text:
            self._spoiled.add(key)
        head, fence, _ = reply.text.rpartition("\n```")
        calls = [replace(one, arguments=one.arguments[:-9]) for one in reply.calls]
        return replace(reply, text=head if fence else reply.text, calls=tuple(calls))


BEFORE = "<think>What would `f(x)` be?\n```python\nf = None\n```\nYes.</think>\n\nSure! **Here it is:**\n\n"
AFTER = "\n\n**That is all.** Tell me if you want more."


def member_of(seen: ReceivedRequest) -> str:
    """Who asks, by the first words of its prompt."""
    head = str(seen.messages[0]["content"])
    found = re.search(r"You are the ([\w ]+)|You (plan|write|review) (?:small )?Python", head)
    assert found is not None, head[:300]
    return f"{found[1] or found[2]}{' with tools' if 'You work in the team' in head else ''}"


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id=f"call-{name}", name=name, arguments=msgspec.json.encode(arguments).decode())


def calls(*made: ToolCall) -> Reply:
    return Reply(calls=tuple(replace(one, id=f"{one.id}-{number}") for number, one in enumerate(made)))


def block(name: str, text: str) -> str:
    return f"```python {name}\n{text}```"


def planner(asked: Asked) -> Reply:
    checks = [*asked.checks, f"check: tests test_{asked.module}.py"]
    return Reply(text="\n   ".join(["1. it does what the goal says", *checks]))


def text_coder(asked: Asked) -> Reply:
    if asked.correction is not None:
        old, new = asked.correction
        return Reply(text=f"F1: fixed, so\n\n{difference('solution.py', old, new)}")
    files = {"solution.py": asked.program, "test_solution.py": asked.tests}
    return Reply(text="F1: fixed, so\n\n" + "\n\n".join(block(*one) for one in files.items()))


def difference(name: str, old: str, new: str) -> str:
    return f"```python {name}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```"


def tool_coder(asked: Asked) -> Reply:
    ready = call("check", ready=True)
    if asked.correction is not None:
        old, new = asked.correction
        return calls(call("edit", edits=[{"path": "solution.py", "old": old, "new": new}]), ready)
    tests = call("write", path="test_solution.py", text=asked.tests)
    return calls(call("write", path="solution.py", text=asked.program), tests, ready)


def small_planner(asked: Asked) -> Reply:
    return Reply(text='{"file": "solution.py", "kind": "function", "examples": []}')


def small_coder(asked: Asked) -> Reply:
    if asked.fault == "diff" and not asked.number:
        return Reply(text=difference("solution.py", asked.program, asked.task.solution))
    return Reply(text=block("", asked.program))


def autocoder(asked: Asked) -> Reply:
    decided = {"reasoning": "so", "decision": {"wrong": "code", "item": "P1", "why": "the plan says so"}}
    if asked.correction is not None:
        old, new = asked.correction
        return calls(call("edit_text", path="main.py", old=old, new=new, **decided))
    if asked.number and asked.fault == "wrong":
        return calls(call("write_code", path="main.py", code=asked.program, **decided))
    return calls(call("create", code=asked.program, test_code=asked.tests, **decided))


def manager(asked: Asked) -> Reply:
    if asked.written:
        return Reply(text="terminate: the checks pass")
    return Reply(
        text="\n".join(["Write main.py, which does what the goal says.", *asked.checks, "next: coder"])
    )


def pair_coder(asked: Asked) -> Reply:
    if asked.correction is not None:
        return Reply(text=difference("main.py", *asked.correction))
    return Reply(text=block("main.py", asked.program))


def assistant(asked: Asked) -> Reply:
    """Writes the program and its tests, and runs them; what they say decides whether it goes on."""
    if asked.results and " passed" in asked.results[-1]:
        return Reply(text="The function is in main.py, and its tests pass.")
    runs = call("run", command="python -m pytest -q test_main.py")
    if asked.correction is not None:
        old, new = asked.correction
        return calls(call("File", reasoning="so", file_name="main.py", old=old, new=new), runs)
    files = {"main.py": asked.program, "test_main.py": asked.tests}
    written = [call("File", reasoning="so", file_name=name, body=text) for name, text in files.items()]
    return calls(*written, runs)


def proxy(asked: Asked) -> Reply:
    if asked.results:
        return Reply(text="The function is in main.py.")
    return calls(call("SendMessage", recipient="assistant", message=asked.task.goal))


MEMBERS: dict[str, Callable[[Asked], Reply]] = {
    "planner of a small software team": planner,
    "coder of a small software team": text_coder,
    "coder of a small software team with tools": tool_coder,
    "reviewer of a small software team": lambda _: Reply(text="verdict: accept"),
    "plan": small_planner,
    "write": small_coder,
    "review": lambda _: Reply(text='{"line": "", "text": "", "verdict": "accept"}'),
    "coder of an autocoder": autocoder,
    "manager of a small group": manager,
    "coder of a small group": pair_coder,
    "code assistant": assistant,
    "user proxy": proxy,
}


def team_file(name: str) -> bytes:
    """A built-in team, `small` or `text` for iterate in these forms; late answers are not waited for."""
    form = name if name in ("small", "text") else ""
    team = TEAMS["iterate" if form else name]
    members: list[dict[str, object]] = []
    for one in team.members:
        spec = (
            one if one.role in ("runner", "proxy", "exemplar") else replace(one, form=form, timeout=PATIENCE)
        )
        spec = replace(spec, candidates=4) if form == "small" and one.role == "coder" else spec
        members.append({field: getattr(spec, field) for field in MemberSettings.__struct_fields__})
        members[-1] |= {"role": one.role, "name": one.name}
    shared = {field: getattr(team, field) for field in TeamSettings.__struct_fields__}
    return msgspec.json.encode({"name": name, **shared, "members": members})
