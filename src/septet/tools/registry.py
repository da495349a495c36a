"""One registry of tools for every way of working: what a model may call, who may, and what comes of it.

A tool is a function: the docstring is the description, its parameters after the first are the arguments.

    @tool
    async def weather(context: ToolContext, place: str) -> str:
        "The weather of a place."
        return f"it rains in {place}"

Or it is a class (a dataclass, a msgspec struct, a pydantic model): the fields are the arguments, `use(self, context)`
does it. A function from a project to a project is an *action*: what it changes in the project becomes the next version.

    @action
    def add_licence(context: Context, holder: str) -> Context:
        "Put a licence header on main.py."
        return context.with_file("main.py", f"# © {holder}\n{context.file('main.py')}")

Packages bring theirs by the entry point groups `septet.tools` and `septet.actions`, which mean the same.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, Self, TypeVar, get_type_hints, overload, runtime_checkable

import msgspec

from septet.common.entry_points import plugins
from septet.common.text import join_words
from septet.common.values import Value
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.errors import BadConfig, SeptetError
from septet.team.context import Context
from septet.tools.arguments import ObjectSchema, decode_arguments
from septet.workspace.changes import wishes

GROUPS = ("septet.tools", "septet.actions")


class ToolContext(Protocol):
    """The context of a tool: it can read and write text files of the workspace, and run programs."""

    @property
    def root(self) -> Path:
        """The folder of the workspace."""
        ...

    @property
    def texts(self) -> Mapping[str, str]:
        """The current texts of files that may be read. Raises KeyError for a file that is not text."""
        ...

    @property
    def project(self) -> Context:
        """The program so far, as actions see it."""
        ...

    def inside(self, path: str) -> str:
        """The path from the workspace's folder on: programs, and models after them, name whole ones."""
        ...

    def exists(self, path: str) -> bool:
        """Whether the workspace has that file, even if it may not be read."""
        ...

    def secret_reason(self, path: str) -> str:
        """Why the file looks like a secret, which no tool shows; empty if it does not."""
        ...

    def has_read(self, path: str) -> bool:
        """Whether the member has seen the whole file as it is now."""
        ...

    def write(self, path: str, text: str | None) -> None:
        """Request a new text of a file, or its deletion (None). Nothing is written until all changes are valid."""
        ...

    async def execute(self, path: str) -> RunResult:
        """Run a Python file in the sandbox."""
        ...

    async def run(self, command: str, seconds: float = 0) -> RunResult:
        """Run a command in the sandbox; `seconds` may be less than the team's limit, 0 is that limit."""
        ...

    async def check(self) -> "ToolResult":
        """Run the checks on the newest files as the runner would, and return the results."""
        ...


class ToolResult(Value):
    """What a tool says to the model, and in one line to people.

    `shown` are files whose whole text it told. `failed` is of interest to people: the model reads it from the text.
    `ready` ends the member's turn: it has handed in what it changed.
    """

    text: str
    summary: str = ""
    shown: tuple[str, ...] = ()
    failed: bool = False
    ready: bool = False


Outcome = str | ToolResult | Refusal
"""The tool's answer to the model, or the reason why it did nothing."""
Use = Callable[[ToolContext, str], Awaitable[Outcome]]


@dataclass(frozen=True)
class Tool:
    """A function that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """The JSON schema of its arguments."""
    call: Use
    repeatable: bool = True
    """Whether a call that a crash interrupted may be repeated; else its answer says that it was interrupted."""
    edits: bool = False
    """Whether the tool must change files: a call that changes none has failed."""
    asks: bool = False
    """Its answer is what the person says; the tool itself answers where nobody may be asked."""
    needs_edits: bool = False
    """Whether it is about all edits of the same answer: it does nothing where one of them was refused."""
    keeps_output: bool = False
    """Whether files that its programs change, when they end well, become part of the work."""
    roles: tuple[str, ...] = ()
    """Who may use it. Without any it is for those who change files; planner and reviewer get only what names them."""

    def offer(self, common: Mapping[str, object] | None = None) -> ToolOffer:
        """The tool as a model is told about it; every call must give the `common` parameters too."""
        if not common:
            return ToolOffer(name=self.name, description=self.description, parameters=dict(self.parameters))
        schema = msgspec.convert(self.parameters, ObjectSchema)
        parameters = {
            **self.parameters,
            "properties": {**common, **schema.properties},
            "required": [*common, *schema.required],
        }
        return ToolOffer(name=self.name, description=self.description, parameters=parameters)

    def allows(self, role: str) -> bool:
        return not self.roles or role in self.roles

    async def use(self, context: ToolContext, arguments: str) -> Outcome:
        """`arguments` is the JSON text as the model wrote it. Wrong ones and the tool's own failures are refusals."""
        try:
            return await self.call(context, arguments)
        except SeptetError:  # the sandbox or the log failed, not the tool: no model can fix that
            raise
        except Exception as error:  # the person's own code: its errors go to the model
            return Refusal(reason=f"{self.name} failed: {type(error).__name__}: {error}")


Toolbox = Mapping[str, Tool]
"""Tools by their names."""


def with_others(own: Toolbox, others: Toolbox) -> Toolbox:
    """The tools with those of others; where two have a name, the other's gets another."""
    merged = dict(own)
    for name, one in others.items():
        free = name if name not in merged else f"{name[:58]}_other"
        merged[free] = replace(one, name=free)
    return merged


def allowed_tools(tools: Toolbox, role: str) -> Toolbox:
    return {name: one for name, one in tools.items() if one.allows(role)}


class ToolClass(Protocol):
    """Its fields are the arguments."""

    def use(self, context: ToolContext) -> object: ...


@runtime_checkable
class PydanticModel(ToolClass, Protocol):
    """A tool class of a program that has pydantic: it writes its own schema and reads its own arguments."""

    @classmethod
    def model_json_schema(cls) -> dict[str, object]: ...

    @classmethod
    def model_validate_json(cls, json_data: str) -> Self: ...


def tool_of_class(made: type[ToolClass], repeatable: bool = True, roles: Iterable[str] = ()) -> Tool:
    """A class whose fields are the arguments and whose `use` does it."""
    name, description = made.__name__, inspect.cleandoc(made.__doc__ or "")
    if not description or not callable(getattr(made, "use", None)):
        raise BadConfig(f"the tool '{name}' needs a docstring and a method `use(self, context)`")
    parameters, read = form_of_class(made)

    async def call(context: ToolContext, arguments: str) -> Outcome:
        try:
            wanted = read(arguments or "{}")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            return misfit(name, shorten_fault(error), parameters)
        return spoken(await completed(wanted.use(context)))

    return Tool(name, description, parameters, call, repeatable, roles=tuple(roles))


def form_of_class(made: type[ToolClass]) -> tuple[Mapping[str, object], Callable[[str], ToolClass]]:
    """The JSON schema of its fields, and how it is made from JSON."""
    if issubclass(made, PydanticModel):
        schema = made.model_json_schema()
        named = {key: value for key, value in schema.items() if key not in ("title", "description")}
        return named, made.model_validate_json
    if not (is_dataclass(made) or issubclass(made, msgspec.Struct)):
        raise BadConfig(f"the tool '{made.__name__}' has no fields", "put @dataclass on the class")
    schema = schema_of(made)
    return schema, partial(decode_arguments, form=made, schema=schema)


def shorten_fault(error: Exception) -> str:
    """Without the advice for programmers that pydantic adds to each fault."""
    lines = [line.split(" [type=")[0].strip() for line in str(error).splitlines()]
    return "; ".join(line for line in lines if not line.startswith("For further information"))


def tool_of_function(
    function: Callable[..., object],
    repeatable: bool = True,
    roles: Iterable[str] = (),
    edits: bool | None = None,
) -> Tool:
    """A function of a tool context, or an action: a function from a project to a project."""
    name, description = function.__name__, inspect.cleandoc(function.__doc__ or "")
    if not description:
        raise BadConfig(f"the tool '{name}' has no docstring", "say there what it does")
    form, is_action = arguments_form(function), first_hint(function) is not ToolContext
    is_edit = is_action if edits is None else edits
    schema = schema_of(form)

    async def call(context: ToolContext, arguments: str) -> Outcome:
        try:
            given = decode_arguments(arguments, form, schema)
        except (msgspec.MsgspecError, RecursionError) as error:
            return misfit(name, str(error), schema)
        first = context.project if is_action else context
        result = await completed(function(first, **msgspec.structs.asdict(given)))
        return write_project(name, context, result) if is_action else spoken(result)

    return Tool(name, description, schema, call, repeatable, edits=is_edit, roles=tuple(roles))


def schema_of(form: type) -> dict[str, object]:
    """A JSON schema without references, which some services do not follow."""
    components = msgspec.json.schema_components([form], ref_template="{name}")[1]

    def inline(part: object) -> object:
        if isinstance(part, Mapping):
            known: Mapping[str, object] = msgspec.convert(part, dict[str, object])
            name = known.get("$ref")
            if isinstance(name, str):
                return inline({key: value for key, value in components[name].items() if key != "title"})
            return {key: inline(value) for key, value in known.items()}
        if isinstance(part, list | tuple):
            return [inline(one) for one in msgspec.convert(part, list[object])]
        return part

    schema = msgspec.convert(inline(components[form.__name__]), ObjectSchema)
    return {
        "type": "object",
        "properties": dict(schema.properties),
        "required": list(schema.required),
        "additionalProperties": False,
    }


async def completed(result: object) -> object:
    return await result if inspect.isawaitable(result) else result


def spoken(result: object) -> Outcome:
    return result if isinstance(result, Refusal | ToolResult) else str(result)


def write_project(name: str, context: ToolContext, after: object) -> Outcome:
    """Request the changes that an action made to the project, file by file."""
    if not isinstance(after, Context | Refusal):
        return Refusal(reason=f"{name} gave back no context")
    if isinstance(after, Refusal):
        return after
    for path, text in wishes(context.project, after).items():
        context.write(path, text)
    return ""


def misfit(name: str, why: str, parameters: Mapping[str, object]) -> Refusal:
    """What is wrong with the arguments, and which ones there are."""
    schema = msgspec.convert(parameters, ObjectSchema)
    known = [f"{one} (needed)" if one in schema.required else one for one in schema.properties]
    hint = f"; its arguments are {join_words(known)}" if known else "; it takes no arguments"
    return Refusal(reason=f"{name} cannot be called like that: {why}{hint}")


def first_hint(function: Callable[..., object]) -> object:
    """The type of a function's first parameter."""
    first = next(iter(inspect.signature(function).parameters), "")
    return get_type_hints(function).get(first)


def arguments_form(function: Callable[..., object]) -> type[msgspec.Struct]:
    """A struct type for the arguments: all parameters after the context, by name and type."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if name not in hints or parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise BadConfig(f"the tool '{function.__name__}' has an odd parameter '{name}'", "give it a type")
        plain = parameter.default is parameter.empty
        fields.append((name, hints[name]) if plain else (name, hints[name], parameter.default))
    return msgspec.defstruct(
        f"{function.__name__}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )  # pyright: ignore[reportArgumentType]  # read off a signature


def read_arguments(text: str) -> Mapping[str, object] | Refusal:
    """Parse the arguments as a JSON object; nothing is evaluated."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:
        return Refusal(reason=f"the arguments are not a JSON object ({error})")


REGISTERED: dict[str, Tool] = {}
"""Tools that this program has registered."""
T = TypeVar("T")


@overload
def tool(made: T) -> T: ...
@overload
def tool(*, repeatable: bool = True, roles: Iterable[str] = ()) -> Callable[[T], T]: ...
def tool(
    made: T | None = None, *, repeatable: bool = True, roles: Iterable[str] = ()
) -> T | Callable[[T], T]:
    """Register a function, a class or a `Tool` as a tool; it stays what it is.

    A function or class that is not `repeatable` is never used twice for one call; `roles` are those who may use it.
    """

    def register(made: T) -> T:
        known = tool_of(made, repeatable, roles)
        REGISTERED[known.name] = known
        return made

    return register if made is None else register(made)


action = tool
"""Another name of `tool`, for functions from a project to a project."""


def tool_of(made: object, repeatable: bool = True, roles: Iterable[str] = ()) -> Tool:
    """Build the tool of a class or a function; a `Tool` is one already."""
    if isinstance(made, Tool):
        return made
    if inspect.isfunction(made):
        return tool_of_function(made, repeatable, roles)
    if isinstance(made, type):
        return tool_of_class(made, repeatable, roles)
    raise BadConfig(f"{tool_name(made)!r} is no tool", "write a function, or a class with a method `use`")


def tool_name(made: object) -> str:
    return made.name if isinstance(made, Tool) else str(getattr(made, "__name__", made))


def known_tools(builtin: Iterable[Tool] = ()) -> dict[str, Tool]:
    """All tools by name: those of a way, of installed packages, and those that the program registered."""
    found = {one.name: one for one in builtin}
    for group in GROUPS:
        for loaded in plugins(group):
            name = tool_name(loaded)
            found[name] = REGISTERED.get(name) or tool_of(loaded)
    return {**found, **REGISTERED}
