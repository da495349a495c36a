"""Actions: functions from a context to a context, offered to the model by their signature and docstring.

    @action
    def add_licence(context: Context, holder: str) -> Context:
        "Put a licence header on main.py."
        return context.with_file("main.py", f"# © {holder}\n{context.file('main.py')}")

Packages bring theirs by the entry point group `septet.actions`.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, TypeVar, get_type_hints, overload

import msgspec
from msgspec import Meta

from septet.common.entry_points import plugins
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.errors import BadConfig
from septet.team.context import Context
from septet.workspace.edits import insert_lines, remove_lines, replace_lines, replace_text
from septet.workspace.files import path_trouble

GROUP = "septet.actions"
Effect = Context | Refusal


F = TypeVar("F", bound=Callable[..., Effect | Awaitable[Effect]])


class Action:
    """A function that the model may choose. One that is not repeatable is never run twice for one call."""

    def __init__(self, function: Callable[..., object], repeatable: bool = True) -> None:
        self.function = function
        self.name = function.__name__
        self.description = inspect.cleandoc(function.__doc__ or "")
        self.repeatable = repeatable
        self.form = arguments_form(function)
        if not self.description:
            raise BadConfig(f"the action '{self.name}' has no docstring", "say there what it does")

    def offer(self, extra: Mapping[str, object] | None = None) -> ToolOffer:
        """The action as a model is told about it, with the parameters that every action has."""
        schema = msgspec.json.schema_components([self.form])[1][self.form.__name__]
        common = {"reasoning": REASONING, **(extra or {})}
        return ToolOffer(
            name=self.name,
            description=self.description,
            parameters={
                "type": "object",
                "properties": {**common, **schema.get("properties", {})},
                "required": [*common, *schema.get("required", [])],
                "additionalProperties": False,
            },
        )

    async def apply(self, context: Context, arguments: Mapping[str, object]) -> Effect:
        """What it makes of the context; wrong arguments and its own failures come back as a refusal."""
        try:
            given = msgspec.convert(dict(arguments), self.form, strict=False)
        except msgspec.ValidationError as error:
            return Refusal(reason=f"{self.name} cannot be called like that: {error}")
        try:
            effect = self.function(context, **msgspec.structs.asdict(given))
            effect = await effect if inspect.isawaitable(effect) else effect
        except Exception as error:  # a person's own code: what it raises is told to the model
            return Refusal(reason=f"{self.name} failed: {type(error).__name__}: {error}")
        if not isinstance(effect, Context | Refusal):
            return Refusal(reason=f"{self.name} gave back no context")
        return effect


REASONING: dict[str, object] = {"type": "string", "description": "Why this action, in one or two sentences."}
REGISTERED: dict[str, Action] = {}


@overload
def action(function: F) -> F: ...
@overload
def action(*, repeatable: bool = True) -> Callable[[F], F]: ...
def action(function: F | None = None, *, repeatable: bool = True) -> F | Callable[[F], F]:
    """Register a function as an action; it stays a plain function."""

    def register(function: F) -> F:
        made = Action(function, repeatable)
        REGISTERED[made.name] = made
        return function

    return register if function is None else register(function)


def arguments_form(function: Callable[..., object]) -> type[msgspec.Struct]:
    """The arguments as a checked form: everything after the context, by name and type."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if name not in hints or parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise BadConfig(
                f"the action '{function.__name__}' has an odd parameter '{name}'", "give it a type"
            )
        plain = parameter.default is parameter.empty
        fields.append((name, hints[name]) if plain else (name, hints[name], parameter.default))
    return msgspec.defstruct(
        f"{function.__name__}_arguments", fields, kw_only=True, forbid_unknown_fields=True
    )  # pyright: ignore[reportArgumentType]  # read off a signature


def read_arguments(text: str) -> Mapping[str, object] | Refusal:
    """A JSON object; nothing is ever evaluated."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:
        return Refusal(reason=f"the arguments are not a JSON object ({error})")


def known_actions(builtin: Iterable[Action]) -> dict[str, Action]:
    """Those that come with Septet, those of installed packages and those that the program registered."""
    found = {one.name: one for one in builtin}
    for loaded in plugins(GROUP):
        if not inspect.isfunction(loaded):
            raise BadConfig(f"{loaded!r} of an installed package is no action", "an action is a function")
        found[loaded.__name__] = REGISTERED.get(loaded.__name__) or Action(loaded)
    return {**found, **REGISTERED}


MAIN = "main.py"
Path = Annotated[str, Meta(description="A path inside the project, e.g. main.py")]
Line = Annotated[int, Meta(description="Counted from 1")]
Code = Annotated[str, Meta(description="Whole lines, nothing left out")]


def create(context: Context, code: Code, test_code: Code = "") -> Effect:
    """Start the project: write main.py and, in test_main.py, its tests."""
    if context.file(MAIN) is not None:
        return Refusal(reason=f"{MAIN} exists already; use write_code or one of the edits")
    return create_file_change(context, MAIN, code, test_code)


def create_new_file(context: Context, path: Path, code: Code, test_code: Code = "") -> Effect:
    """Write a file that does not exist yet and, beside it, its tests."""
    if context.file(path) is not None:
        return Refusal(reason=f"'{path}' exists already; use write_code or one of the edits")
    return create_file_change(context, path, code, test_code)


def create_file_change(context: Context, path: str, code: str, test_code: str) -> Effect:
    folder, slash, name = path.rpartition("/")
    files = {path: code, **({f"{folder}{slash}test_{name}": test_code} if test_code.strip() else {})}
    for one in files:
        if trouble := path_trouble(one, context.filetree):
            return trouble
    for one, text in files.items():
        context = context.with_file(one, text)
    return context


def write_code(context: Context, path: Path, code: Code) -> Effect:
    """Write a whole file, new or instead of the one that is there."""
    return path_trouble(path, context.filetree) or context.with_file(path, code)


def delete_file(context: Context, path: Path) -> Effect:
    """Delete a file; the one that starts the program stays."""
    if path in (context.run.split() or [MAIN]):
        return Refusal(reason=f"{path} is the program itself and cannot be deleted")
    return context.without_file(path) if context.file(path) is not None else no_such_file(context, path)


def insert_code(context: Context, path: Path, line: Line, code: Code) -> Effect:
    """Insert lines before a line; one past the last line appends."""
    return edit_file_change(context, path, lambda text: insert_lines(text, line, code))


def replace_code(context: Context, path: Path, start_line: Line, end_line: Line, code: Code) -> Effect:
    """Replace the lines from start_line to end_line, both included."""
    return edit_file_change(context, path, lambda text: replace_lines(text, start_line, end_line, code))


def remove_code(context: Context, path: Path, start_line: Line, end_line: Line) -> Effect:
    """Remove the lines from start_line to end_line, both included."""
    return edit_file_change(context, path, lambda text: remove_lines(text, start_line, end_line))


def edit_text(context: Context, path: Path, old: str, new: str) -> Effect:
    """Replace a piece of text that stands in the file exactly once."""
    return edit_file_change(context, path, lambda text: replace_text(text, old, new))


def edit_file_change(context: Context, path: str, edit: Callable[[str], str | Refusal]) -> Effect:
    text = context.file(path)
    if text is None:
        return no_such_file(context, path)
    after = edit(text)
    return after if isinstance(after, Refusal) else context.with_file(path, after)


def no_such_file(context: Context, path: str) -> Refusal:
    return Refusal(reason=f"there is no '{path}'; the files are {', '.join(context.filetree) or 'none yet'}")


def file_actions() -> list[Action]:
    functions = [
        create,
        create_new_file,
        write_code,
        insert_code,
        replace_code,
        remove_code,
        edit_text,
        delete_file,
    ]
    return [Action(function) for function in functions]
