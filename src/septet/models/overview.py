"""What a machine has to think with, for people and for programs. Pure."""

from septet.domain.values import Value
from septet.models.choosing import Choice, nothing


class Known(Value):
    """A model by name; `here` where nothing has to be fetched first."""

    name: str
    about: str
    here: bool = True


class Overview(Value, omit_defaults=False):
    """All that this machine can think with; `keys` are the providers that would let us in."""

    models: tuple[Known, ...]
    keys: tuple[str, ...]
    chosen: Choice | None

    def lines(self) -> list[str]:
        known = [
            f"{one.name}  {one.about}"
            + (
                ""
                if not one.name.startswith("local/")
                else f"  ({'here' if one.here else fetching(one.name)})"
            )
            for one in self.models
        ]
        let_in = [f"{provider}/…  a key is known" for provider in self.keys]
        choice = self.chosen
        why = f"{choice.name}, because {choice.reason}" if choice else f"none; {nothing()}"
        return [*known, *let_in, f"chosen: {why}"]


def fetching(name: str) -> str:
    return f"septet models get {name.removeprefix('local/')}"


def amount(size: int) -> str:
    """Bytes as people say them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size / 1e3:.1f} kB"
