"""Replies by JSON schema, for models that keep to a form better than to words.

A small model is helped, not trusted: it is told little, byte-stable at the head of every request, and what it
says about the goal becomes a check that a machine can do.
"""

import ast
import shlex
from typing import TypeVar

import msgspec

from septet.domain.plans import CommandSucceeds, Plan, Refusal, Requirement, TestsPass
from septet.domain.replies import CodeFile, checked
from septet.domain.reviews import Finding, Verdict
from septet.domain.state import State
from septet.domain.values import Value
from septet.team.reviews import ReadReview, unique

Schema = dict[str, object]
T = TypeVar("T")

LONGEST_REPLY = 1500
"""Tokens: a small model that has lost its way goes on for ever."""

HEADS = {
    "planner": """\
You plan small Python programs. Reply in JSON.
file: the name of the Python module to write.
kind: "program" if it is started from the command line, else "function".
examples: three short calls of the function that the goal asks for, each with the exact Python value that it must
return. Choose small inputs whose results you are certain of, and one special case. A program has none.
""",
    "coder": """\
You write Python. Reply in JSON.
code: the whole module, complete and working, standard library only, without tests.
tests: a short pytest module. It imports what it tests from the module; then two or three test functions
with two asserts each. Small inputs; assert only what you are certain of.
""",
    "reviewer": """\
You review small Python programs. Reply in JSON. What the runner saw are facts.
findings: what the code does wrong for the goal, at most two, usually none; line: the line of the code that is
wrong, copied exactly.
verdict: "accept" if the code does what the goal says, else "revise".
""",
}


def closed(properties: Schema) -> Schema:
    """An object with exactly these fields, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string"}
EXAMPLE = closed({"call": TEXT, "result": TEXT})
FINDING = closed({"line": TEXT, "text": TEXT})
SCHEMAS: dict[str, Schema] = {
    "planner": closed(
        {
            "file": {"type": "string", "pattern": "^[a-z][a-z0-9_]{1,30}\\.py$"},
            "kind": {"enum": ["function", "program"]},
            "examples": {"type": "array", "items": EXAMPLE, "maxItems": 4},
        }
    ),
    "coder": closed({"code": TEXT, "tests": TEXT}),
    "reviewer": closed(
        {
            "findings": {"type": "array", "items": FINDING, "maxItems": 2},
            "verdict": {"enum": ["accept", "revise"]},
        }
    ),
}


class Example(Value):
    call: str
    result: str


class PlanForm(Value):
    file: str
    kind: str
    examples: tuple[Example, ...] = ()


class CodeForm(Value):
    code: str
    tests: str


class FindingForm(Value):
    line: str
    text: str


class ReviewForm(Value):
    findings: tuple[FindingForm, ...]
    verdict: Verdict


def in_form(text: str) -> bool:
    """Whether a reply is meant as JSON, whoever asked for it."""
    return text.lstrip().startswith("{")


def plan_in_form(goal: str, text: str) -> Plan | Refusal:
    """The goal itself is the first requirement, word for word: a small planner cannot lose any of it."""
    form = read(text, PlanForm)
    if isinstance(form, Refusal):
        return form
    module = form.file.removesuffix(".py")
    whole = Requirement(id="P1", text=" ".join(goal.split()), check=TestsPass(target=f"test_{module}.py"))
    examples = {example.call: example for example in form.examples if is_checkable(example)}
    others = [
        Requirement(id=f"P{number}", text=f"{one.call} gives {one.result}", check=check_of(module, one))
        for number, one in enumerate(examples.values(), start=2)
    ]
    return Plan(items=(whole, *others), run=f"python {form.file}" if form.kind == "program" else "")


def is_checkable(example: Example) -> bool:
    """A call on one line and a literal that it can be compared with."""
    try:
        called = ast.parse(example.call, mode="eval").body
        ast.literal_eval(example.result)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return isinstance(called, ast.Call) and "\n" not in example.call + example.result


def check_of(module: str, example: Example) -> CommandSucceeds:
    code = f"from {module} import *; assert {example.call} == {example.result}"
    return CommandSucceeds(command=f"python -c {shlex.quote(code)}")


def files_in_form(state: State, text: str) -> tuple[CodeFile, ...] | Refusal:
    form = read(text, CodeForm)
    if isinstance(form, Refusal):
        return form
    program, tests = file_names(state)
    return checked(
        [CodeFile(path=program, text=ended(form.code)), CodeFile(path=tests, text=ended(form.tests))]
    )


def file_names(state: State) -> tuple[str, str]:
    """The module and its tests, as the plan's checks name them."""
    items = state.plan.items if state.plan else ()
    targets = [item.check.target for item in items if isinstance(item.check, TestsPass)]
    tests = targets[0].partition("::")[0] if targets else "test_main.py"
    folder, _, name = tests.rpartition("/")
    program = name.removeprefix("test_") if name.startswith("test_") else f"main_{name}"
    return (program if not folder or folder == "tests" else f"{folder}/{program}"), tests


def names_section(state: State) -> str:
    program, tests = file_names(state)
    return f"# Files\nThe module is {program}, its tests are {tests}."


def review_in_form(text: str, code: str) -> ReadReview | Refusal:
    """A finding counts when the line that it is about really stands in the code; none left means accepted."""
    form = read(text, ReviewForm)
    if isinstance(form, Refusal):
        return form
    lines = {line.strip() for line in code.splitlines()}
    real = [one for one in form.findings if one.line.strip() in lines and one.line.strip()]
    findings = unique(
        [Finding(id="", text=one.text, item="P1", severity="must", evidence=one.line.strip()) for one in real]
    )
    accept = form.verdict == "accept" or not findings
    return ReadReview(verdict="accept" if accept else "revise", findings=findings)


def read(text: str, form: type[T]) -> T | Refusal:
    try:
        return msgspec.json.decode(text, type=form)
    except msgspec.MsgspecError as error:
        return Refusal(reason=f"the reply is not the JSON that was asked for ({error}); be brief")


def ended(code: str) -> str:
    return code.rstrip() + "\n"
