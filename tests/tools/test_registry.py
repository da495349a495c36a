"""How functions and classes become tools: names, schemas, arguments as models write them, and who may use what."""

import dataclasses
import json
from typing import Annotated

import msgspec
import pytest
from tools.projects import ProjectContext, project

from septet.domain.plans import Refusal
from septet.errors import BadConfig
from septet.team.context import Context
from septet.tools.registry import (
    Tool,
    ToolContext,
    ToolResult,
    allowed_tools,
    known_tools,
    read_arguments,
    tool,
    tool_name,
    tool_of,
    tool_of_class,
    tool_of_function,
    with_others,
)

pytestmark = pytest.mark.anyio


class Piece(msgspec.Struct):
    """A part."""

    size: int
    note: str = ""


def measure(
    context: ToolContext,
    count: int,
    pieces: tuple[Piece, ...] = (),
    ratio: Annotated[float, msgspec.Meta(description="How much.", ge=0)] = 0.5,
) -> str:
    """Measure it.

    And say so.
    """
    return f"{count} {ratio} {[piece.size for piece in pieces]}"


def sign(context: Context, name: str) -> object:
    """Sign it."""
    return context.with_file("a.py", name) if name else None


async def used(made: Tool, arguments: str, context: ProjectContext | None = None) -> object:
    return await made.use(context or ProjectContext(project(a_py="x")), arguments)


async def test_numbers_that_models_write_as_text_are_numbers() -> None:
    made = tool_of_function(measure)
    text = '{"count": "3", "ratio": "0.25", "pieces": [{"size": "7"}]}'
    assert await used(made, text) == "3 0.25 [7]"
    assert await used(tool_of_class(Counter), '{"count": "3"}') == "counted 3"
    for wrong in ('{"count": "x"}', '{"count": 3, "more": 1}', "{", "[]", '{"count": 3, "ratio": -1}'):
        refused = await used(made, wrong)
        assert isinstance(refused, Refusal)
        assert refused.reason.startswith("measure cannot be called like that: ")
    missing = await used(made, "")
    assert isinstance(missing, Refusal)
    assert "missing required field `count`" in missing.reason


def test_a_tool_is_offered_with_a_closed_schema_without_references() -> None:
    made = tool_of_function(measure)
    assert (made.name, made.description) == ("measure", "Measure it.\n\nAnd say so.")
    assert made.parameters == {
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "pieces": {
                "type": "array",
                "items": {
                    "type": "object",
                    "description": "A part.",
                    "properties": {"size": {"type": "integer"}, "note": {"type": "string", "default": ""}},
                    "required": ["size"],
                },
                "default": [],
            },
            "ratio": {"type": "number", "description": "How much.", "minimum": 0, "default": 0.5},
        },
        "required": ["count"],
        "additionalProperties": False,
    }
    offer = made.offer({"why": {"type": "string"}})
    assert [*offer.parameters["properties"]] == ["why", "count", "pieces", "ratio"]  # pyright: ignore[reportGeneralTypeIssues]  # a schema
    assert offer.parameters["required"] == ["why", "count"]
    assert made.offer().parameters == made.parameters


def test_a_function_that_changes_a_project_edits_and_any_other_does_not() -> None:
    assert [tool_of_function(one).edits for one in (sign, measure)] == [True, False]
    assert [tool_of_function(sign, edits=False).edits, tool_of_function(measure, edits=True).edits] == [
        False,
        True,
    ]
    assert tool_of_function(measure).repeatable
    assert not tool_of_function(measure, repeatable=False).repeatable


async def test_an_action_writes_what_it_changed_and_must_give_a_project_back() -> None:
    context = ProjectContext(project(a_py="x"))
    assert await used(tool_of_function(sign), '{"name": "me"}', context) == ""
    assert context.wished == {"a.py": "me"}
    assert await used(tool_of_function(sign), '{"name": ""}') == Refusal(reason="sign gave back no context")


async def test_what_a_tool_says_is_text_and_its_errors_are_refusals() -> None:
    def number(context: ToolContext) -> int:
        """Say five."""
        return 5

    async def result(context: ToolContext) -> ToolResult:
        """Say it well."""
        return ToolResult(text="well", summary="said")

    def fail(context: ToolContext) -> None:
        """Fail."""
        raise KeyError("what")

    assert await used(tool_of_function(number), "{}") == "5"
    assert await used(tool_of_function(result), "{}") == ToolResult(text="well", summary="said")
    assert await used(tool_of_function(fail), "{}") == Refusal(reason="fail failed: KeyError: 'what'")


@dataclasses.dataclass
class Counter:
    """Count."""

    count: int = 1

    def use(self, context: ToolContext) -> str:
        return f"counted {self.count}"


async def test_a_class_is_a_tool_with_its_fields_as_arguments() -> None:
    made = tool_of_class(Counter, repeatable=False, roles=["coder"])
    assert (made.name, made.description, made.repeatable, made.roles) == (
        "Counter",
        "Count.",
        False,
        ("coder",),
    )
    assert made.parameters["properties"] == {"count": {"type": "integer", "default": 1}}
    assert [await used(made, text) for text in ('{"count": 2}', "")] == ["counted 2", "counted 1"]
    assert tool_of(Counter).name == "Counter"
    assert tool_of(made) is made
    assert tool_of(measure).name == "measure"
    with pytest.raises(BadConfig, match="'5' is no tool"):
        tool_of(5)


def nameless(context: ToolContext) -> str:
    return ""


def untyped(context: ToolContext, what) -> str:  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]  # the point
    """Say what."""
    return ""


def starred(context: ToolContext, *what: str) -> str:
    """Say what."""
    return ""


class Useless:
    """It does nothing."""


ODD: list[tuple[object, str]] = [
    (nameless, "has no docstring"),
    (untyped, "has an odd parameter 'what'"),
    (starred, "has an odd parameter 'what'"),
    (Useless, "needs a docstring and a method"),
]


@pytest.mark.parametrize(("made", "trouble"), ODD)
def test_what_cannot_be_a_tool_says_why(made: object, trouble: str) -> None:
    with pytest.raises(BadConfig, match=trouble):
        tool_of(made)


def test_a_role_gets_the_tools_that_are_for_all_or_for_it() -> None:
    free, bound = tool_of_function(measure), dataclasses.replace(tool_of_function(sign), roles=("coder",))
    tools = {"measure": free, "sign": bound}
    assert [*allowed_tools(tools, "coder")] == ["measure", "sign"]
    assert [*allowed_tools(tools, "planner")] == ["measure"]


def test_two_tools_of_one_name_stay_two() -> None:
    own, other = tool_of_function(measure), dataclasses.replace(tool_of_function(sign), name="measure")
    merged = with_others({"measure": own}, {"measure": other, "sign": tool_of_function(sign)})
    assert [(name, one.name, one.description) for name, one in merged.items()] == [
        ("measure", "measure", own.description),
        ("measure_other", "measure_other", "Sign it."),
        ("sign", "sign", "Sign it."),
    ]
    long = "n" * 64
    renamed = with_others({long: own}, {long: other})
    assert [*renamed] == [long, "n" * 58 + "_other"]


def test_arguments_are_an_object_or_a_refusal() -> None:
    assert (read_arguments(""), read_arguments('{"a": [1]}')) == ({}, {"a": [1]})
    for text in ("[]", "{", "[" * 100_000):
        refused = read_arguments(text)
        assert isinstance(refused, Refusal)
        assert refused.reason.startswith("the arguments are not a JSON object (")


def test_a_registered_tool_is_known_and_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("septet.tools.registry.REGISTERED", {})
    assert tool(measure) is measure
    assert tool(repeatable=False, roles=["coder"])(sign) is sign
    mine = dataclasses.replace(tool_of_function(measure), name="mine")
    known = known_tools([mine])
    assert {"mine", "measure", "sign"} <= known.keys()
    assert (known["sign"].repeatable, known["sign"].roles) == (False, ("coder",))
    assert (known["measure"].repeatable, known["measure"].roles) == (True, ())
    assert (tool_name(mine), tool_name(measure), tool_name(5)) == ("mine", "measure", "5")
    assert json.dumps(known["measure"].offer().parameters)
