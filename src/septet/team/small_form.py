"""Prompts and parsers for small models: short prompts, JSON schemas, code that a program sorts into files.

A small model gets a short prompt whose beginning is the same bytes in every request, and is not trusted: what it says
about the goal becomes a check that a machine can do.
"""

import ast
import json
import re
import shlex
import sys
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from septet.common.values import Value
from septet.domain.events import ReviewGiven
from septet.domain.plans import CommandSucceeds, Plan, Refusal, Requirement, TestsPass, parse_plan, plan_text
from septet.domain.replies import CodeFile
from septet.domain.reviews import Finding, Verdict
from septet.domain.state import State
from septet.team.baseline import has_project
from septet.team.evidence import remarks_in_turn, shortcomings
from septet.team.goal_examples import condition_of, example_of, stated_examples, wanted_names
from septet.team.reviews import ParsedReview, unique_findings
from septet.team.sorting import sorted_files

Schema = dict[str, object]
T = TypeVar("T")

FILE_NAME = re.compile(r"[\w./-]+\.[a-z]{2,4}")
FILE_MENTION = re.compile(r"\b[\w/-]+\.(?:py|txt|csv|json|md|html|toml|ya?ml|ini|log|db)\b")

MAX_REPLY_TOKENS = 500
"""A small model may repeat itself without end."""

MAX_EXAMPLE_CHECKS = 6
"""Stated examples that become separate checks; the tests contain all of them."""

MAX_OBJECTS = 20
"""Opening braces of a reply at which an object may begin."""
JSON = json.JSONDecoder()

UNCHECKABLE = """\
none of the examples can be checked; write calls with literal arguments and their literal result, like
"first('a b', 1) == ['a']"; files do not exist, put what they hold into the call"""


def object_schema(properties: Schema) -> Schema:
    """An object with exactly these fields, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string"}
SCHEMAS: dict[str, Schema] = {
    "planner": object_schema(
        {
            "file": {"type": "string", "pattern": "^[a-z][a-z0-9_]{1,30}\\.py$"},
            "kind": {"enum": ["function", "program"]},
            "examples": {"type": "array", "items": TEXT, "maxItems": 3},
        }
    ),
    "reviewer": object_schema({"line": TEXT, "text": TEXT, "verdict": {"enum": ["accept", "revise"]}}),
}
"""The coder has no schema: small models make mistakes with code escaped in JSON."""


class PlanForm(Value):
    file: str
    kind: str
    examples: tuple[str, ...] = ()


class ReviewForm(Value):
    line: str
    text: str
    verdict: Verdict


def is_json_reply(text: str) -> bool:
    """Whether a reply is meant as JSON, be it among words."""
    return text.lstrip().startswith("{") or any(
        form_among_words(text, form) for form in (PlanForm, ReviewForm)
    )


def plan_from_goal(state: State) -> Plan | None:
    """The plan for a function whose name and examples the goal states: a model could only repeat them.

    None if the goal is about files, or there is something else to plan for.
    """
    names = wanted_names(state.goal)
    known = state.plan.current or has_project(state) or remarks_in_turn(state) or state.facts
    if known or not names or FILE_MENTION.search(state.goal) or not stated_examples(state.goal):
        return None
    name = re.sub(r"[^a-z0-9_]", "", names[0].lower()).strip("_")[:30]
    taken = not name or not name[0].isalpha() or name.startswith("test") or name in sys.stdlib_module_names
    form = PlanForm(file=f"{'solution' if taken else name}.py", kind="function")
    return plan_of(state.goal, form)


def parse_small_plan(goal: str, text: str, lenient: bool = False) -> Plan | Refusal:
    """Build the plan from a planner's JSON. The goal, word for word, is the first requirement, so nothing is lost.

    Examples that the goal states are checks. Examples that the planner adds are guesses and prove nothing. A plan
    without any example that a machine can check is accepted only if `lenient`.
    """
    form = decode_reply(text, PlanForm)
    if isinstance(form, Refusal):
        return form
    plan = plan_of(goal, form)
    if form.examples and not (stated_examples(goal) or plan.guesses) and not lenient:
        return Refusal(reason=UNCHECKABLE)
    return plan


def plan_of(goal: str, form: PlanForm) -> Plan:
    module = form.file.removesuffix(".py")
    stated = [one for one in stated_examples(goal) if not one.raises][:MAX_EXAMPLE_CHECKS]
    said = [one.strip().removeprefix("assert ") for one in form.examples]
    known = {one.call for one in stated}
    guesses = [one for one in dict.fromkeys(said) if is_checkable(one) and call_of(one) not in known]
    whole = Requirement(id="P1", text=" ".join(goal.split()), check=TestsPass(target=f"test_{module}.py"))
    run = f"python {form.file}" if form.kind == "program" and not stated else ""
    plan = Plan(items=(whole,), run=run, guesses=tuple(guesses))
    for one in stated:
        item = Requirement(
            id=f"P{len(plan.items) + 1}", text=str(one), check=example_check(module, condition_of(one))
        )
        longer = replace(plan, items=(*plan.items, item))
        plan = longer if parse_plan(plan_text(longer)) == longer else plan
    return plan


def call_of(example: str) -> str:
    found = example_of(example)
    return found.call if found else ""


def functions_of(state: State) -> list[str]:
    """The functions to write: those that the goal names, else the one that most guesses call."""
    guesses = [
        found.function
        for one in (state.plan.current.guesses if state.plan.current else ())
        if (found := example_of(one))
    ]
    return wanted_names(state.goal) or [name for name, _ in Counter(guesses).most_common(1)]


def wants_function(state: State) -> bool:
    """Whether candidates can be compared by calls: the goal asks for a function, not for a program to start."""
    return bool(functions_of(state)) and not (state.plan.current and state.plan.current.run)


def states_function(state: State) -> bool:
    """Whether the goal states examples of the function: then candidates need not bring asserts of their own."""
    return wants_function(state) and bool(stated_examples(state.goal))


def is_checkable(example: str) -> bool:
    """Whether the example is `call == literal` on one line and needs nothing else, such as a file."""
    try:
        body = ast.parse(example, mode="eval").body
        if not isinstance(body, ast.Compare) or not isinstance(body.ops[0], ast.Eq) or "\n" in example:
            return False
        ast.literal_eval(body.comparators[0])
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    if not isinstance(body.left, ast.Call) or len(body.ops) != 1 or " => " in example:
        return False
    texts = [node.value for node in ast.walk(body.left) if isinstance(node, ast.Constant)]
    return not any(isinstance(text, str) and FILE_NAME.fullmatch(text) for text in texts)


def example_check(module: str, example: str) -> CommandSucceeds:
    return CommandSucceeds(command=f"python -c {shlex.quote(f'from {module} import *; assert {example}')}")


def parse_small_files(state: State, text: str) -> tuple[CodeFile, ...] | Refusal:
    stated = stated_examples(state.goal)
    wanted = functions_of(state) if wants_function(state) else ()
    return sorted_files(text, *file_names(state), wanted, stated)


def file_names(state: State) -> tuple[str, str]:
    """The names of the module and of its test file, from the plan's checks."""
    items = state.plan.items
    targets = [item.check.target for item in items if isinstance(item.check, TestsPass)]
    tests = targets[0].partition("::")[0] if targets else "test_main.py"
    folder, _, name = tests.rpartition("/")
    program = name.removeprefix("test_") if name.startswith("test_") else f"main_{name}"
    return (program if not folder or folder == "tests" else f"{folder}/{program}"), tests


def parse_small_review(text: str, code: str) -> ParsedReview | Refusal:
    """Parse a review in JSON. A finding counts only if the line that it quotes is in the code; without one: accept."""
    form = decode_reply(text, ReviewForm)
    if isinstance(form, Refusal):
        return form
    lines = {line.strip() for line in code.splitlines()}
    line = form.line.strip()
    if form.verdict == "accept" or not form.text.strip() or line not in lines - {""}:
        return ParsedReview(verdict="accept", findings=())
    finding = Finding(id="F1", text=form.text.strip(), item="P1", severity="must", evidence=line)
    return ParsedReview(verdict="revise", findings=(finding,))


def review_from_evidence(state: State) -> ReviewGiven | None:
    """Build the review from evidence alone if that decides; None if a model must review.

    Failing checks and doubts reject a version, two candidates that behave alike accept it.
    """
    version = state.work.version
    if version is None:
        return None
    verdict = version.confirmation.verdict if version.confirmation else None
    doubts = [version.note] if verdict in ("contradicted", "unconfirmed") else []
    troubles = [*shortcomings(state), *doubts]
    if not troubles and (verdict != "agreed" or state.plan.wishes):
        return None
    findings = [Finding(id="", text=trouble, severity="must", evidence="runner") for trouble in troubles]
    return ReviewGiven(
        version=version.number,
        tree=version.tree,
        verdict="revise" if troubles else "accept",
        findings=unique_findings(findings),
        remarks=tuple(remark.text for remark in remarks_in_turn(state)),
        green=not shortcomings(state),
    )


def decode_reply(text: str, form: type[T]) -> T | Refusal:
    try:
        return msgspec.json.decode(text, type=form)
    except msgspec.MsgspecError as error:
        refusal = Refusal(reason=f"the reply is not the JSON that was asked for ({error}); be brief")
        return form_among_words(text, form) or refusal


def form_among_words(text: str, form: type[T]) -> T | None:
    """The first object in the text that is such a form: not every server keeps a model to its schema."""
    for start in islice(re.finditer(r"\{", text), MAX_OBJECTS):
        with suppress(ValueError, RecursionError):
            found, _ = JSON.raw_decode(text, start.start())
            return msgspec.convert(found, form)
    return None
