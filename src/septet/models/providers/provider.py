"""What a provider of models is: how people name its models, where they are, what they cost and how one is opened.

A provider is one value in a file of this folder and one line in `models/table.py`; an installed package brings its own
as an entry point of the group `septet.providers`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from septet.common.values import Value
from septet.errors import NoModel
from septet.models.encoding import Loader
from septet.models.http import HttpClient
from septet.ports import Model


class Endpoint(Value):
    """Where a model is and with which credentials; `url` is the root of the service, empty without one."""

    model: str
    url: str = ""
    key: str = ""
    token: str = ""
    version: str = ""


class ProviderSettings(Value):
    """What a name is resolved with: the variables of the environment and the keys of `septet keys set`."""

    environment: Mapping[str, str]
    keys: Mapping[str, str] = {}

    def variable(self, name: str, default: str = "") -> str:
        return self.environment.get(name, "").strip() or default


@dataclass(frozen=True, slots=True)
class Connections:
    """What models are opened with. `load_image` reads an image by its blob address; `demos` has the demo scripts."""

    http: HttpClient
    open_embedded: Callable[[str], Model]
    load_image: Loader | None = None
    demos: Path = Path("demos")


class Choice(Value):
    """The whole name of a model and the reason for which it is used."""

    name: str
    reason: str


class PriceListEntry(Value):
    """What the public price lists call a provider and its model."""

    provider: str
    model: str


Billing = Literal["free"] | PriceListEntry | None
"""Who asks for money, and under which name; None where nobody knows."""


class Variable(Value):
    """A variable of the environment that a provider reads, as `septet config` lists it; a secret is not shown."""

    setting: str
    name: str
    default: str = ""
    secret: bool = False


def by_name(model: str, settings: ProviderSettings) -> Endpoint:
    """An endpoint that needs nothing but the model's name."""
    return Endpoint(model=model)


def no_default(settings: ProviderSettings) -> Choice | None:
    return None


def unlisted_price(model: str) -> Billing:
    return None


def free(model: str) -> Billing:
    return "free"


def same_name(name: str) -> str:
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One kind of model name.

    `form` is how people write it (`openai/NAME`); the word before the first `/` or `:` is the provider's name.
    `endpoint` is pure and raises NoModel where a key or an address is missing. `default` is the model to use when
    nobody named one. `absolute` makes a name that means the same from any folder. A `rehearsal` has its answers
    already: it costs nothing and gets no wrappers. `small` models get short prompts and several candidates, models with
    tools (`has_tools`) call them well. The name of a provider with a `default_model` may stand alone.
    """

    form: str
    about: str
    open: Callable[[Endpoint, Connections], Model]
    endpoint: Callable[[str, ProviderSettings], Endpoint] = by_name
    key_variable: str | None = None
    variables: tuple[Variable, ...] = ()
    default: Callable[[ProviderSettings], Choice | None] = no_default
    billing: Callable[[str], Billing] = unlisted_price
    absolute: Callable[[str], str] = same_name
    default_model: str | None = None
    has_embeddings: bool = False
    rehearsal: bool = False
    small: bool = False
    has_tools: bool = False

    @property
    def name(self) -> str:
        return re.split("[/:]", self.form)[0]

    @property
    def prefix(self) -> str:
        """What all of its models begin with, the separator included."""
        return self.form[: len(self.name) + 1]

    def model_in(self, name: str) -> str | None:
        """The provider's own name for a model; None where the name is of another provider."""
        if name in (self.name, self.prefix):
            return self.default_model
        return name.removeprefix(self.prefix) if name.startswith(self.prefix) else None

    def key(self, settings: ProviderSettings) -> str:
        """The provider's own variable wins over a stored key."""
        variable = settings.environment.get(self.key_variable, "") if self.key_variable else ""
        return variable or settings.keys.get(self.name, "")

    def missing_key(self) -> NoModel:
        return NoModel(
            f"no key for {self.name} is known",
            f"set {self.key_variable} or run: septet keys set {self.name}",
        )

    def default_with_key(self, model: str, settings: ProviderSettings) -> Choice | None:
        """This model, where a key for the provider is known."""
        if not self.key(settings) or self.key_variable is None:
            return None
        is_set = bool(settings.variable(self.key_variable))
        why = f"{self.key_variable} is set" if is_set else f"a key for {self.name} is kept"
        return Choice(name=f"{self.prefix}{model}", reason=why)
