"""Several questions to one model at the same time: a server with slots answers two in less time than twice one."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import combinations, product

import anyio
from msgspec.structs import replace

from septet.agents.ask import ask_model, request_of
from septet.agents.replies import misplaced_call, sources
from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import (
    Confirmation,
    DecisionRecorded,
    Event,
    ModelAnswered,
    ReplyRefused,
    VersionWritten,
)
from septet.domain.files import FileRef, is_test, tree_of
from septet.domain.messages import Message
from septet.domain.plans import Refusal
from septet.domain.reduce import add_spending
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import SeptetError
from septet.ports import Agent, Blobs, Bus, BusMessage, Model, Record
from septet.team.agreement import alike, calls_like, first_disagreement
from septet.team.budgets import expected_spending, overdrawn
from septet.team.evidence import shortcomings
from septet.ways.iterate.briefing import briefing
from septet.ways.iterate.replies import write_version


class SilentBus:
    """A bus that tells nobody: two answers that are made at once would be one muddle to a watcher."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        return None

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[BusMessage]]:
        return self._bus.subscribe(topic)


async def ask_together(
    askers: Sequence[RoleSpec], model: Model, bus: Bus, state: State, messages: tuple[Message, ...]
) -> list[ModelAnswered]:
    """An answer for each of the askers, who are one member in different moods; only the first is heard.

    What failed is left out as long as something came, and so is what no budget would do for. A crash in
    between loses what was answered already: not for models that cost money.
    """
    came: dict[int, ModelAnswered] = {}
    errors: list[SeptetError] = []

    async def ask_one(place: int, asker: RoleSpec) -> None:
        ahead = as_if_answered(asker, state, messages, place)
        try:
            came[place] = await ask_model(asker, model, SilentBus(bus) if place else bus, ahead, messages)
        except SeptetError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for place, asker in enumerate(askers):
            tasks.start_soon(ask_one, place, asker)
    if not came:
        raise errors[0]
    return [came[place] for place in sorted(came)]


def as_if_answered(asker: RoleSpec, state: State, messages: tuple[Message, ...], times: int) -> State:
    """What those who were asked at the same moment will have taken is taken already."""
    for _ in range(times):
        more = expected_spending(state, asker.name, request_of(asker, state, messages))
        state = replace(state, spending=add_spending(state, asker.name, more))
    return state


VARIETY = 0.8
"""The temperature of every draw after the first: the same candidate twice would teach nothing."""

Rehearse = Callable[[State, VersionWritten], Awaitable[State]]
"""What the runner would see if this were the newest version; nothing of it is recorded."""

Outcomes = Sequence[Sequence[str | None]]
Compare = Callable[[State, Sequence[VersionWritten], Sequence[str]], Awaitable[Outcomes]]
"""What each version's program makes of each call; None where it fails."""


class Trials(Value):
    """How candidates are tried out."""

    rehearse: Rehearse
    compare: Compare


class Trial(Value):
    """A candidate and what still speaks against it: nothing, for one that is green."""

    version: VersionWritten
    troubles: tuple[str, ...]
    label: str


def best_of_n_agent(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs, trials: Trials) -> Agent:
    """Answers that were drawn before a crash are used; their trials cost nothing and are made again."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.turn is None or state.turn.settled:
            return None
        draw = Draw(state, trials)
        waiting = list(state.turn.answers)
        messages = briefing(member, state, await sources(state, blobs))
        while draw.next_draws(member):
            if not waiting:
                if draw.count and overdrawn(state, state.budget, member.name):
                    break
                askers = [warmer(member, draw.count + place) for place in range(draw.next_draws(member))]
                for said in await ask_together(askers, model, bus, state, messages):
                    state = await record(said)
                    waiting.append(said)
            await draw.add(waiting.pop(0), blobs)
        await draw.ask_the_version_before()
        if (reason := draw.reason(member.name)) is not None:
            await record(reason)
        return draw.result(member.name)

    return turn


def warmer(member: RoleSpec, count: int) -> RoleSpec:
    return member if count == 0 else replace(member, temperature=max(VARIETY, member.temperature or 0.0))


class Draw:
    """The candidates of one turn. Programs and tests are tried in every pairing: either may be the wrong one.

    Where the plan has examples, a green program is believed only when a second one behaves like it, and none
    otherwise, on more calls than those: small models repeat their examples as tests. A single green one is
    worth as many draws again, for somebody to confirm it or not.
    """

    def __init__(self, state: State, trials: Trials) -> None:
        self._state = state
        self._trials = trials
        self._calls = calls_like(state.plan)
        self._versions: list[VersionWritten] = []
        self._refused: Refusal | None = None
        self._best: Trial | None = None
        self._green: dict[int, Trial] = {}
        self._troubles: dict[str, tuple[str, ...]] = {}
        self._agreed: str = ""
        """Who agrees on how many calls."""
        self._dissent: str = ""
        """A call on which two candidates differ."""
        self.count = 0

    def next_draws(self, member: RoleSpec) -> int:
        """How many draws come next: two at once where two are needed and cost nothing, else one or none."""
        if self._agreed or (self._green and not self._calls):
            return 0
        alone = bool(self._calls) and len(self._green) == 1
        left = (2 if alone else 1) * member.candidates - self.count
        return max(0, min(left, 2 if member.form == "small" and self._calls else 1))

    async def add(self, said: ModelAnswered, blobs: Blobs) -> None:
        """Take one more answer in and try what has become possible with it."""
        self.count += 1
        event = misplaced_call(said.answer) or await write_version(self._state, said.answer.text, blobs)
        if not isinstance(event, VersionWritten):
            self._refused = event if isinstance(event, Refusal) else None
            return
        self._versions.append(event)
        for program, tests in self._fresh():
            await self._try(program, tests)
        if self._calls and len(self._green) > 1:
            await self._compare()

    def _fresh(self) -> list[tuple[int, int]]:
        """The pairings that the newest candidate brings, itself first."""
        newest = len(self._versions) - 1
        pairs = [pair for pair in product(range(newest + 1), range(newest + 1)) if newest in pair]
        return sorted(pairs, key=lambda pair: pair != (newest, newest))

    async def _try(self, program: int, tests: int) -> None:
        if program in self._green:
            return
        version = pair_version(self._versions[program], self._versions[tests])
        if version.tree not in self._troubles:
            after = await self._trials.rehearse(self._state, version)
            self._troubles[version.tree] = tuple(shortcomings(after))
        label, troubles = pair_label(program, tests), self._troubles[version.tree]
        tried = Trial(version=version, troubles=troubles, label=label)
        if not tried.troubles:
            self._green[program] = tried
        if self._best is None or len(tried.troubles) < len(self._best.troubles):
            self._best = tried

    async def _compare(self) -> None:
        """Believe the first green program when all of them behave alike: one dissent is one too many."""
        green = list(self._green.values())
        outcomes = await self._trials.compare(self._state, [one.version for one in green], self._calls)
        counts = [alike(one, other) for one, other in combinations(outcomes, 2)]
        if counts and all(counts):
            self._best = green[0]
            self._agreed = f"{len(green)} candidates behave alike on {pluralize(min(counts), 'call')}"
        else:
            self._dissent = first_disagreement(self._calls, outcomes)

    async def ask_the_version_before(self) -> None:
        """A single green program may find its like in the version before, if nothing else spoke against that."""
        before = self._state.version
        if self._agreed or len(self._green) != 1 or before is None:
            return
        if before.confirmation != Confirmation(verdict="unconfirmed"):
            return
        (only,) = self._green.values()
        outcomes = await self._trials.compare(self._state, [only.version, before], self._calls)
        if len(outcomes) == 2 and (count := alike(*outcomes)):
            self._best = only
            self._agreed = (
                f"this and the version before: candidates behave alike on {pluralize(count, 'call')}"
            )

    def reason(self, speaker: str) -> DecisionRecorded | None:
        """Why the best of them is taken."""
        if self._best is None:
            return None
        why = "; ".join(filter(None, [*(self._best.troubles or ("every check passes",)), self._note()]))
        return DecisionRecorded(by=speaker, what=f"took {self._best.label} of {self.count}", why=why)

    def result(self, speaker: str) -> VersionWritten | ReplyRefused:
        """The best of them; a refusal where none could be read."""
        if self._best is None:
            reason = self._refused.reason if self._refused else "no candidate could be read"
            return ReplyRefused(role=speaker, reason=reason)
        note = self._note() or self._best.version.note
        return replace(self._best.version, note=note, confirmation=self._confirmation())

    def _confirmation(self) -> Confirmation | None:
        if self._agreed:
            return Confirmation(verdict="agreed", detail=self._agreed)
        if not self._calls or not self._green:
            return None
        verdict = "contradicted" if self._dissent else "unconfirmed"
        return Confirmation(verdict=verdict, detail=self._dissent)

    def _note(self) -> str:
        confirmation = self._confirmation()
        return confirmation_text(confirmation) if confirmation else ""


def confirmation_text(confirmation: Confirmation) -> str:
    match confirmation.verdict:
        case "agreed":
            return confirmation.detail
        case "contradicted":
            return f"other candidates do not confirm it: {confirmation.detail}"
        case "unconfirmed":
            return "other candidates do not confirm it on calls like the plan's"


def pair_label(program: int, tests: int) -> str:
    if program == tests:
        return f"candidate {program + 1}"
    return f"the program of candidate {program + 1} with the tests of candidate {tests + 1}"


def pair_version(program: VersionWritten, tests: VersionWritten) -> VersionWritten:
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
