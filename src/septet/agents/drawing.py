"""A coder that draws several candidates in one turn and lets the checks choose, not its own opinion."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import product

from msgspec.structs import replace

from septet.agents.asking import ask
from septet.agents.runner import is_test
from septet.agents.speaking import sources, write_version
from septet.domain.events import DecisionRecorded, Event, ModelAnswered, ReplyRefused, VersionWritten
from septet.domain.files import FileRef, tree_of
from septet.domain.plans import Refusal
from septet.domain.reduce import reduce_answer
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.domain.values import Value
from septet.ports import Agent, Blobs, Bus, Model
from septet.team.briefings import briefing
from septet.team.evidence import shortcomings

VARIETY = 0.8
"""The temperature of every draw after the first: the same candidate twice would teach nothing."""

Rehearse = Callable[[State, VersionWritten], Awaitable[State]]
"""What the runner would see if this were the newest version; nothing of it is recorded."""


class Tried(Value):
    """A candidate and what still speaks against it: nothing, for one that is green."""

    version: VersionWritten
    troubles: tuple[str, ...]
    label: str


def drawing(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs, rehearse: Rehearse) -> Agent:
    """Answers that were drawn before a crash are used; their trials cost nothing and are made again."""

    async def turn(state: State) -> AsyncGenerator[Event, None]:
        if state.turn is None or state.turn.settled:
            return
        draw = Draw(state, rehearse)
        waiting = list(state.turn.answers)
        messages = briefing(member, state, await sources(state, blobs))
        while not draw.green and draw.count < member.candidates:
            if waiting:
                said = waiting.pop(0)
            else:
                said = await ask(warmer(member, draw.count), model, bus, state, messages)
                yield said
                state = reduce_answer(state, said)
            await draw.add(said, blobs)
        for event in draw.result(member.name):
            yield event

    return turn


def warmer(member: RoleSpec, count: int) -> RoleSpec:
    return member if count == 0 else replace(member, temperature=max(VARIETY, member.temperature or 0.0))


class Draw:
    """The candidates of one turn. Programs and tests are tried in every pairing: either may be the wrong one."""

    def __init__(self, state: State, rehearse: Rehearse) -> None:
        self._state = state
        self._rehearse = rehearse
        self._versions: list[VersionWritten] = []
        self._refused: Refusal | None = None
        self._best: Tried | None = None
        self.count = 0

    @property
    def green(self) -> bool:
        return self._best is not None and not self._best.troubles

    async def add(self, said: ModelAnswered, blobs: Blobs) -> None:
        """Take one more answer in and try what has become possible with it, until something is green."""
        self.count += 1
        event = await write_version(self._state, said.answer.text, blobs)
        if not isinstance(event, VersionWritten):
            self._refused = event if isinstance(event, Refusal) else None
            return
        self._versions.append(event)
        for label, version in self._fresh():
            await self._try(label, version)
            if self.green:
                return

    def _fresh(self) -> list[tuple[str, VersionWritten]]:
        """The pairings that the newest candidate brings, itself first."""
        newest = len(self._versions) - 1
        pairs = [pair for pair in product(range(newest + 1), repeat=2) if newest in pair]
        pairs.sort(key=lambda pair: pair != (newest, newest))
        known: set[str] = set()
        found: list[tuple[str, VersionWritten]] = []
        for program, tests in pairs:
            version = paired(self._versions[program], self._versions[tests])
            if version.tree not in known:
                known.add(version.tree)
                found.append((labelled(program, tests), version))
        return found

    async def _try(self, label: str, version: VersionWritten) -> None:
        after = await self._rehearse(self._state, version)
        tried = Tried(version=version, troubles=tuple(shortcomings(after)), label=label)
        if self._best is None or len(tried.troubles) < len(self._best.troubles):
            self._best = tried

    def result(self, speaker: str) -> list[Event]:
        """The best of them, with the reason; a refusal where none could be read."""
        if self._best is None:
            reason = self._refused.reason if self._refused else "no candidate could be read"
            return [ReplyRefused(role=speaker, reason=reason)]
        why = "; ".join(self._best.troubles) or "every check passes"
        what = f"took {self._best.label} of {self.count}"
        return [DecisionRecorded(by=speaker, what=what, why=why), self._best.version]


def labelled(program: int, tests: int) -> str:
    if program == tests:
        return f"candidate {program + 1}"
    return f"the program of candidate {program + 1} with the tests of candidate {tests + 1}"


def paired(program: VersionWritten, tests: VersionWritten) -> VersionWritten:
    """The program of one candidate with the tests of another."""
    files: tuple[FileRef, ...] = tuple(
        sorted(
            (
                *(file for file in program.files if not is_test(file.path)),
                *(file for file in tests.files if is_test(file.path)),
            ),
            key=lambda file: file.path,
        )
    )
    return replace(program, files=files, tree=tree_of(files))
