"""Packages that a program needs: what is missing, what was agreed, what came of it."""

from typing import Literal

from msgspec.structs import replace

from septet.common.values import Value

Policy = Literal["off", "ask", "auto"]


class MissingPackages(Value):
    """Imports that nothing here provides: `distributions` bring them, of the `unknown` ones the index may know."""

    distributions: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.distributions or self.unknown)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.distributions, *self.unknown))


def wanted_words(missing: MissingPackages) -> str:
    """What would be installed, and what is only looked for."""
    looked_for = [f"{name} (if the index has one of that name that provides it)" for name in missing.unknown]
    return ", ".join([*missing.distributions, *looked_for])


class Installation(Value):
    """What an install brought, what it did not and why, and the installer's own words."""

    installed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    why: str = ""
    output: str = ""
    seconds: float = 0.0


class Provisions(Value):
    """Where a chat stands with its packages: what is wanted now, and what was settled before."""

    wanted: MissingPackages = MissingPackages()
    allowed: frozenset[str] = frozenset()
    settled: frozenset[str] = frozenset()
    """Installed, refused or failed: not asked for again."""
    always: bool = False

    def fresh(self, missing: MissingPackages) -> MissingPackages:
        """The part that nothing was decided about yet, or that was allowed and is still to come."""
        return MissingPackages(
            distributions=tuple(name for name in missing.distributions if name not in self.settled),
            unknown=tuple(name for name in missing.unknown if name not in self.settled),
        )

    @property
    def to_ask(self) -> MissingPackages:
        """What somebody has to agree to before anything goes on."""
        open_names = self.wanted.names - self.allowed - self.settled
        return self.wanted if open_names and not self.always else MissingPackages()

    def with_decision(self, names: tuple[str, ...], allowed: bool, always: bool) -> "Provisions":
        granted = self.allowed | set(names) if allowed else self.allowed
        settled = self.settled if allowed else self.settled | set(names)
        return replace(self, allowed=granted, settled=settled, always=self.always or always)

    def after(self, done: Installation) -> "Provisions":
        settled = self.settled | set(done.installed) | set(done.failed)
        return replace(self, wanted=MissingPackages(), settled=settled)
