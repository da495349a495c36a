"""Best of n for small models: programs drawn at once, kept over all rounds, and chosen by evidence."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import product

import anyio
from msgspec.structs import replace

from septet.agents.ask import request_of, send_request
from septet.agents.replies import misplaced_call
from septet.agents.reply_files import sources
from septet.common.values import Value
from septet.domain.events import (
    DecisionRecorded,
    Event,
    ModelAnswered,
    ReplyRefused,
    VersionWritten,
)
from septet.domain.files import FileRef, is_test, tree_of
from septet.domain.messages import Message, Request
from septet.domain.plans import Refusal
from septet.domain.reduce import add_spending
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import SeptetError
from septet.ports import Agent, Blobs, Bus, BusMessage, Model, Record
from septet.team.budgets import exceeded_budget, expected_spending, spent_before
from septet.team.evidence import shortcomings
from septet.team.small_form import wants_function
from septet.ways.iterate.briefing import briefing, opinion_briefing
from septet.ways.iterate.candidate_pool import DRAWS_AT_ONCE, OPINIONS, CandidatePool, Observe
from septet.ways.iterate.replies import write_version

WIDE_FROM, WIDE = 12, 1.0
"""From this draw on the temperature is higher: what is still open needs other ideas."""
MOST_PROGRAMS = 6
"""Of a turn, where each candidate is a whole program and is tried with all checks."""


class SilentBus:
    """A bus that tells nobody: two answers that are made at once would be one muddle to a watcher."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def publish(self, topic: str, message: bytes, by: str = "") -> None:
        return None

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[AsyncIterator[BusMessage]]:
        return self._bus.subscribe(topic)


class Asker(Value):
    """A member in a mood, and how many answers it wants to one request."""

    member: RoleSpec
    draws: int = 1

    def request(self, state: State, messages: tuple[Message, ...]) -> Request:
        return replace(request_of(self.member, state, messages), draws=self.draws)


async def ask_together(
    askers: Sequence[Asker], messages: tuple[Message, ...], model: Model, bus: Bus, state: State
) -> list[ModelAnswered]:
    """The answers for the askers, who are one member in different moods; only the first is heard.

    What failed is left out as long as something came, and so is what no budget would do for. A crash in
    between loses what was answered already: not for models that cost money.
    """
    came: dict[int, ModelAnswered] = {}
    errors: list[SeptetError] = []

    async def ask_one(place: int, asker: Asker) -> None:
        ahead = as_if_answered(askers[:place], state, messages)
        heard = SilentBus(bus) if place else bus
        try:
            request = asker.request(ahead, messages)
            came[place] = await send_request(request, asker.member, model, heard, ahead)
        except SeptetError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for place, asker in enumerate(askers):
            tasks.start_soon(ask_one, place, asker)
    if not came:
        raise errors[0]
    return [came[place] for place in sorted(came)]


def as_if_answered(askers: Sequence[Asker], state: State, messages: tuple[Message, ...]) -> State:
    """What those who were asked at the same moment will have taken is taken already."""
    for one in askers:
        more = expected_spending(state, one.member.name, one.request(state, messages))
        state = replace(state, spending=add_spending(state.spending, one.member.name, more))
    return state


VARIETY = 0.8
"""The temperature of every draw after the first: the same candidate twice would teach nothing."""

Rehearse = Callable[[State, VersionWritten], Awaitable[State]]
"""What the runner would see if this were the newest version; nothing of it is recorded."""

TRIAL_SECONDS = 10.0
"""A candidate that does not end is known by then; the runner gives the chosen one all its time."""


class Trials(Value):
    """How candidates are tried out."""

    rehearse: Rehearse
    observe: Observe


class CheckedCandidate(Value):
    """A candidate and what still speaks against it: nothing, for one that is green."""

    version: VersionWritten
    troubles: tuple[str, ...]
    label: str


def best_of_n_agent(member: RoleSpec, model: Model, bus: Bus, blobs: Blobs, trials: Trials) -> Agent:
    """Answers that were drawn before a crash are used; their trials cost nothing and are made again."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or state.floor.turn.closed:
            return None
        draw = open_draw(state, member, trials)
        messages = briefing(member, state, await sources(state, blobs))
        await draw.add(state.floor.turn.answers, blobs)
        while asked := next_request(draw, member, state, messages):
            if draw.count and exceeded_budget(state, state.budget, member.name):
                break
            said = await ask_together(*asked, model, bus, state)
            for answer in said:
                state = await record(answer)
            draw.draws_together &= not any(
                asker.draws > 1 and not answer.answer.others
                for asker, answer in zip(asked[0], said, strict=False)
            )
            await draw.add(said, blobs)
        if (reason := draw.reason(member.name)) is not None:
            await record(reason)
        return await draw.result(member.name, blobs)

    return turn


def next_request(
    draw: "CandidatePool | Draw", member: RoleSpec, state: State, messages: tuple[Message, ...]
) -> tuple[list[Asker], tuple[Message, ...]] | None:
    """Who is asked next, and what: for candidates or, when all are drawn, about a call on which they differ."""
    if count := draw.next_draws(member):
        return in_moods(member, draw.drawn, count, draw.draws_together), messages
    if call := draw.question():
        askers = in_moods(member, 1, DRAWS_AT_ONCE, draw.draws_together)
        return askers * (OPINIONS // sum(one.draws for one in askers)), opinion_briefing(state, call)
    return None


def open_draw(state: State, member: RoleSpec, trials: Trials) -> "CandidatePool | Draw":
    """Functions of a small model are compared by what they do; anything else by its own checks."""
    if member.form == "small" and wants_function(state):
        return CandidatePool(state, member, trials.observe)
    return Draw(state, member, trials)


def in_moods(member: RoleSpec, known: int, count: int, together: bool) -> list[Asker]:
    """Who is asked for so many answers; only the very first one is drawn at the member's own temperature."""
    first = [Asker(member=member)] if not known else []
    variety = WIDE if known >= WIDE_FROM else VARIETY
    warm = replace(member, temperature=max(variety, member.temperature or 0.0))
    rest = count - len(first)
    if together:
        return [*first, Asker(member=warm, draws=rest)] if rest else first
    return [*first, *(Asker(member=warm) for _ in range(rest))]


class Draw:
    """The candidates of one turn. Programs and tests are tried in every pairing: either may be the wrong one."""

    draws_together = False
    """A candidate that is green makes further ones needless."""

    def __init__(self, state: State, member: RoleSpec, trials: Trials) -> None:
        self.drawn = spent_before(state, member.name).answers
        seconds = min(TRIAL_SECONDS, state.team.limits.seconds)
        limited = replace(state.team, limits=replace(state.team.limits, seconds=seconds))
        self._state = state
        self._trial_state = replace(state, team=limited)
        self._trials = trials
        self._versions: list[VersionWritten] = []
        self._endless: set[int] = set()
        """Programs that did not end with their own tests: they would not with others'."""
        self._refused: Refusal | None = None
        self._best: CheckedCandidate | None = None
        self._troubles: dict[str, tuple[str, ...]] = {}
        self.count = 0

    def question(self) -> str:
        """None: programs are compared by their checks."""
        return ""

    def next_draws(self, member: RoleSpec) -> int:
        """One more, until a candidate is green."""
        return 0 if self._is_green else max(0, min(1, min(member.candidates, MOST_PROGRAMS) - self.count))

    async def add(self, said: Sequence[ModelAnswered], blobs: Blobs) -> None:
        """Take answers in until one is green, and try what becomes possible with each."""
        for one in said:
            if not self._is_green:
                self.drawn += 1
                await self._add_one(one, blobs)

    @property
    def _is_green(self) -> bool:
        return self._best is not None and not self._best.troubles

    async def _add_one(self, said: ModelAnswered, blobs: Blobs) -> None:
        self.count += 1
        event = misplaced_call(said.answer) or await write_version(self._state, said.answer.text, blobs)
        if not isinstance(event, VersionWritten):
            self._refused = event if isinstance(event, Refusal) else None
            return
        self._versions.append(event)
        for program, tests in self._fresh():
            if program not in self._endless and not self._is_green:
                await self._try(program, tests)

    def _fresh(self) -> list[tuple[int, int]]:
        """The pairings that the newest candidate brings, itself first."""
        newest = len(self._versions) - 1
        pairs = [pair for pair in product(range(newest + 1), range(newest + 1)) if newest in pair]
        return sorted(pairs, key=lambda pair: pair != (newest, newest))

    async def _try(self, program: int, tests: int) -> None:
        version = pair_version(self._versions[program], self._versions[tests])
        if version.tree not in self._troubles:
            after = await self._trials.rehearse(self._trial_state, version)
            self._troubles[version.tree] = tuple(shortcomings(after))
            if program == tests and any(run.result.stopped_by == "time" for run in after.work.runs):
                self._endless.add(program)
        label, troubles = pair_label(program, tests), self._troubles[version.tree]
        if self._best is None or len(troubles) < len(self._best.troubles):
            self._best = CheckedCandidate(version=version, troubles=troubles, label=label)

    def reason(self, speaker: str) -> DecisionRecorded | None:
        """Why the best of them is taken."""
        if self._best is None:
            return None
        why = "; ".join(self._best.troubles or ("every check passes",))
        return DecisionRecorded(by=speaker, what=f"took {self._best.label} of {self.count}", why=why)

    async def result(self, speaker: str, blobs: Blobs) -> VersionWritten | ReplyRefused:
        """The best of them; a refusal where none could be read."""
        if self._best is None:
            reason = self._refused.reason if self._refused else "no candidate could be read"
            return ReplyRefused(role=speaker, reason=reason)
        return self._best.version


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
