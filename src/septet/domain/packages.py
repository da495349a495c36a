"""Packages that a program needs: which are missing, what was decided, what was installed."""

from typing import Literal

from msgspec.structs import replace

from septet.common.values import Value

Policy = Literal["off", "ask", "auto"]


class MissingPackages(Value):
    """Imports that are not installed: `distributions` provide them; the `unknown` ones are looked up in the index.

    `setup` is the command that makes the environment of a project that has none.
    """

    distributions: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    setup: str = ""

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.distributions, *self.unknown, *filter(None, [self.setup])))


def wanted_words(missing: MissingPackages) -> str:
    """Name the packages that would be installed or looked up."""
    lookups = [f"{name} (if the index has one of that name that provides it)" for name in missing.unknown]
    setup = [f"what `{missing.setup}` brings"] if missing.setup else []
    return ", ".join([*missing.distributions, *lookups, *setup])


class Installation(Value):
    """The result of an installation: what was installed, what failed and why, and the installer's output."""

    installed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    why: str = ""
    output: str = ""
    seconds: float = 0.0


class Provisions(Value):
    """The packages of a chat: what is missing now, and what was decided before."""

    wanted: MissingPackages = MissingPackages()
    allowed: frozenset[str] = frozenset()
    settled: frozenset[str] = frozenset()
    """Installed, refused or failed: not asked about again."""
    always: bool = False

    def fresh(self, missing: MissingPackages) -> MissingPackages:
        """Return the part that is not settled yet: undecided, or allowed and not installed."""
        return MissingPackages(
            distributions=tuple(name for name in missing.distributions if name not in self.settled),
            unknown=tuple(name for name in missing.unknown if name not in self.settled),
            setup="" if missing.setup in self.settled else missing.setup,
        )

    @property
    def to_ask(self) -> MissingPackages:
        """The packages that the person must decide about before the chat continues."""
        open_names = self.wanted.names - self.allowed - self.settled
        return self.wanted if open_names and not self.always else MissingPackages()

    def with_decision(self, names: tuple[str, ...], allowed: bool, always: bool) -> "Provisions":
        granted = self.allowed | set(names) if allowed else self.allowed
        settled = self.settled if allowed else self.settled | set(names)
        return replace(self, allowed=granted, settled=settled, always=self.always or always)

    def after(self, done: Installation) -> "Provisions":
        settled = self.settled | set(done.installed) | set(done.failed)
        return replace(self, wanted=MissingPackages(), settled=settled)
