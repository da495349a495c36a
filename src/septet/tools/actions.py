"""Actions: functions from a context to a context, offered to the model by their signature and docstring.

    @action
    def add_licence(context: Context, holder: str) -> Context:
        "Put a licence header on main.py."
        return context.with_file("main.py", f"# © {holder}\\n{context.file('main.py')}")

Packages bring theirs by the entry point group `septet.actions`.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar, get_type_hints, overload

import msgspec

from septet.domain.plans import Refusal
from septet.domain.talk import ToolOffer
from septet.errors import BadConfig
from septet.team.context import Context
from septet.tools.plugins import plugins

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
        self.form = form_of(function)
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


def form_of(function: Callable[..., object]) -> type[msgspec.Struct]:
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
