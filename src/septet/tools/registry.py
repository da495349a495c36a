"""Tools as pydantic models: the docstring is the description, the fields are the arguments, `use` does it.

    @tool
    class Weather(BaseModel):
        "The weather of a place."
        place: str

        async def use(self, hands: Hands) -> str:
            return f"it rains in {self.place}"

Packages bring theirs by the entry point group `septet.tools`.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar, overload

from septet.common.entry_points import plugins
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.errors import BadConfig, SeptetError

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP = "septet.tools"


class Hands(Protocol):
    """What a tool may do: read and write text files of the workspace, and run one of them."""

    @property
    def texts(self) -> Mapping[str, str]: ...

    def exists(self, path: str) -> bool:
        """Whether the workspace holds that file, which may be one that nobody may read."""
        ...

    def write(self, path: str, text: str | None) -> None:
        """Wish a file to hold that text, or to be gone. Nothing is written before all of it is sound."""
        ...

    async def execute(self, path: str) -> RunResult:
        """Run a Python file in the sandbox."""
        ...


Use = Callable[[Hands], str | Refusal | Awaitable[str | Refusal]]


class Usable(Protocol):
    """Whatever fits the toolbox. What is not repeatable is never used twice for one call."""

    @property
    def name(self) -> str: ...

    @property
    def repeatable(self) -> bool: ...

    def offer(self) -> ToolOffer: ...

    async def use(self, arguments: str, hands: Hands) -> str | Refusal:
        """`arguments` is the JSON text exactly as the model wrote it: to be checked first."""
        ...


class Tool:
    """A tool of a member. One that is not repeatable is never used twice for one call."""

    def __init__(self, model: "type[BaseModel]", repeatable: bool = True) -> None:
        self.model = model
        self.name = model.__name__
        self.description = inspect.cleandoc(model.__doc__ or "")
        self.repeatable = repeatable
        if not self.description or not callable(getattr(model, "use", None)):
            raise BadConfig(f"the tool '{self.name}' needs a docstring and a method `use(self, hands)`")

    def offer(self) -> ToolOffer:
        schema = self.model.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        return ToolOffer(name=self.name, description=self.description, parameters=schema)

    async def use(self, arguments: str, hands: Hands) -> str | Refusal:
        """What it says; wrong arguments and its own failures come back as a refusal."""
        from pydantic import ValidationError

        try:
            wanted = self.model.model_validate_json(arguments or "{}")
        except ValidationError as error:
            return Refusal(reason=f"{self.name} cannot be called like that: {shortly(error)}")
        use: Use = getattr(wanted, "use")  # noqa: B009  # checked above; the type of a person's model says nothing of it
        try:
            said = use(hands)
            said = await said if inspect.isawaitable(said) else said
        except SeptetError:  # the sandbox or the log failed, not the tool: no model can mend that
            raise
        except Exception as error:  # a person's own code: what it raises is told to the model
            return Refusal(reason=f"{self.name} failed: {type(error).__name__}: {error}")
        return said if isinstance(said, Refusal) else str(said)


def shortly(error: "Exception") -> str:
    from pydantic import ValidationError

    assert isinstance(error, ValidationError)
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()[:5]
    )


REGISTERED: dict[str, Tool] = {}
M = TypeVar("M")


@overload
def tool(model: type[M]) -> type[M]: ...
@overload
def tool(*, repeatable: bool = True) -> Callable[[type[M]], type[M]]: ...
def tool(model: type[M] | None = None, *, repeatable: bool = True) -> type[M] | Callable[[type[M]], type[M]]:
    """Register a pydantic model as a tool; it stays what it is."""
    from pydantic import BaseModel

    def register(model: type[M]) -> type[M]:
        if not issubclass(model, BaseModel):
            cause = f"the tool '{model.__name__}' is no pydantic model"
            raise BadConfig(cause, "derive it from pydantic.BaseModel")
        made = Tool(model, repeatable)
        REGISTERED[made.name] = made
        return model

    return register if model is None else register(model)


def toolbox(builtin: Iterable[Tool]) -> dict[str, Tool]:
    """Those that come with Septet, those of installed packages and those that the program registered."""
    found = {one.name: one for one in builtin}
    for loaded in plugins(GROUP):
        name = str(getattr(loaded, "__name__", ""))
        found[name] = REGISTERED.get(name) or made_of(loaded)
    return {**found, **REGISTERED}


def made_of(loaded: object) -> Tool:
    from pydantic import BaseModel

    if not isinstance(loaded, type) or not issubclass(loaded, BaseModel):
        raise BadConfig(f"{loaded!r} of an installed package is no tool", "derive it from pydantic.BaseModel")
    return Tool(loaded)
