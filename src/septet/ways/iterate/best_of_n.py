"""Best of n for small models: programs drawn at once, kept over all rounds, and chosen by evidence."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import compress, product

import anyio
from msgspec.structs import replace

from septet.agents.ask import request_of, send_request
from septet.agents.inputs import Probe, probes, seeds_from_calls, seeds_from_signature
from septet.agents.replies import misplaced_call
from septet.agents.reply_files import keep_file, sources
from septet.agents.trials import Questions
from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import (
    Confirmation,
    DecisionRecorded,
    Event,
    ModelAnswered,
    PersonSpoke,
    ReplyRefused,
    VersionWritten,
)
from septet.domain.files import FileRef, is_test, tree_of
from septet.domain.messages import Message, Request
from septet.domain.plans import Refusal
from septet.domain.reduce import add_spending
from septet.domain.replies import CodeFile
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import SeptetError
from septet.ports import Agent, Blobs, Bus, BusMessage, Model, Record
from septet.team.agreement import (
    ALIKE,
    MOST_DRAWS,
    Outcomes,
    ProgramChoice,
    agreed_examples,
    believed_votes,
    choose,
    is_believed,
    rival_question,
    undisputed,
)
from septet.team.budgets import exceeded_budget, expected_spending, spent_before
from septet.team.evidence import shortcomings
from septet.team.goal_examples import StatedExample, example_of, seen_as_stated, stated_examples
from septet.team.reviews import answers_to
from septet.team.small_form import file_names, functions_of, wants_function
from septet.team.sorting import REASONS, SortedReply, read_reply, test_module, test_statement
from septet.ways.iterate.briefing import briefing
from septet.ways.iterate.replies import write_version

MOST_VOTES = 40
DRAWS_AT_ONCE = 4
"""As many as a small model's server answers at the same time."""
WIDE_FROM, WIDE = 12, 1.0
"""From this draw on the temperature is higher: what is still open needs other ideas."""
MOST_PROGRAMS = 6
"""Of a turn, where each candidate is a whole program and is tried with all checks."""

Observe = Callable[[State, Sequence[str], Questions], Awaitable[list[Outcomes]]]
"""What each program did, tried side by side in a temporary workspace."""


class CandidatePool:
    """Every program that the coder has written in this chat, and what speaks for each."""

    def __init__(self, state: State, member: RoleSpec, observe: Observe) -> None:
        self._state = state
        self._observe = observe
        self._program, self._tests = file_names(state)
        self._module = self._program.rsplit("/", 1)[-1].removesuffix(".py")
        self._wanted = functions_of(state)
        self._stated = tuple(stated_examples(state.goal))
        self._readings: list[SortedReply] = []
        self._outcomes: list[Outcomes] = []
        self._questions = Questions()
        self._probes: list[Probe] = []
        self._compared: list[Probe] = []
        """Probes that count: all, or those that no program refuses where the goal states no example."""
        self._choice: ProgramChoice | None = None
        self._fresh = False
        self.drawn = 0
        self.draws_together = True
        self._refused = "no candidate could be read"
        self.count = 0
        for answer in earlier_answers(state, member.name):
            self._read(answer)

    def next_draws(self, member: RoleSpec) -> int:
        """Some at once, as long as no program is believed."""
        left = min(member.candidates - self.count, MOST_DRAWS - self.drawn)
        return 0 if self.is_believed else max(0, min(DRAWS_AT_ONCE - self.drawn % DRAWS_AT_ONCE, left))

    @property
    def is_believed(self) -> bool:
        """Whether no more candidates are needed."""
        return self._choice is not None and is_believed(self._choice, self.drawn, bool(self._stated))

    async def add(self, said: Sequence[ModelAnswered], blobs: Blobs) -> None:
        """Take answers in and choose anew among all."""
        before = self.drawn
        for one in said:
            self._read(one)
        self.count += self.drawn - before
        if self._fresh:
            await self._judge()

    def _read(self, said: ModelAnswered) -> None:
        for text in said.answer.texts:
            self._read_text(text)

    def _read_text(self, text: str) -> None:
        self.drawn += 1
        reading = read_reply(text, self._wanted, self._module)
        if reading.cause:
            self._refused = REASONS.get(reading.cause, f"{', '.join(self._wanted)} is not defined")
            return
        self._readings.append(reading)
        self._fresh = True

    async def _judge(self) -> None:
        """Try all programs: the asserts of new ones are questions to the others too."""
        self._fresh = False
        votes = self._votes()
        self._probes = self._probes or [
            replace(one, call=seen_as_stated(one.call, self._stated)) for one in self._new_probes(votes)
        ]
        calls = tuple(one.call for one in self._probes)
        self._questions = Questions(checks=self._stated, votes=votes, calls=calls)
        programs = list(dict.fromkeys(one.module for one in self._readings))
        told = await self._observe(self._state, programs, self._questions)
        by_program = dict(zip(programs, told, strict=True))
        self._compare([by_program[one.module] for one in self._readings])

    def _compare(self, outcomes: Sequence[Outcomes]) -> None:
        """Choose among programs by what they did with the probes that count."""
        near = [one.near for one in self._probes]
        counts = [True] * len(near) if self._stated else undisputed(outcomes, near)
        self._compared = list(compress(self._probes, counts))
        self._outcomes = [replace(one, probes=tuple(compress(one.probes, counts))) for one in outcomes]
        self._choice = choose(self._outcomes, [one.near for one in self._compared])

    def _votes(self) -> tuple[StatedExample, ...]:
        """Examples that a model invented: the planner's guesses, and what candidates assert; the most common first."""
        plan = self._state.plan.current
        said = [*(plan.guesses if plan else ()), *(text for one in self._readings for text in one.asserts)]
        known = {one.call for one in self._stated}
        found = Counter(one for text in said if (one := example_of(text)) and one.call not in known)
        return tuple(one for one, _ in found.most_common(MOST_VOTES))

    def _new_probes(self, votes: Sequence[StatedExample]) -> list[Probe]:
        """Calls like the stated ones; else like the votes; else made up by the types of the function's arguments."""
        name = self._wanted[0]
        for examples in (self._stated, votes):
            if seeds := seeds_from_calls([one.call for one in examples], name):
                return probes(name, seeds)
        return probes(name, seeds_from_signature(self._readings[0].module, name))

    def reason(self, speaker: str) -> DecisionRecorded | None:
        """Why this program is taken."""
        if self._choice is None:
            return None
        met = sum(self._outcomes[self._choice.place].checks)
        stated = f"{met} of {pluralize(len(self._stated), 'stated example')} met; " if self._stated else ""
        alike = f"{self._choice.alike} of {self._choice.peers} behave alike on {len(self._compared)} calls"
        what = f"took program {self._choice.place + 1} of {len(self._readings)} in all rounds"
        return DecisionRecorded(by=speaker, what=what, why=f"{stated}{alike}")

    async def result(self, speaker: str, blobs: Blobs) -> VersionWritten | ReplyRefused:
        """The best program of all rounds, with the tests that are trusted; a refusal where there is none."""
        if self._choice is None:
            return ReplyRefused(role=speaker, reason=self._refused)
        chosen = self._readings[self._choice.place]
        tests = self._test_text(self._choice)
        if not tests:
            return ReplyRefused(role=speaker, reason="its tests did not come; send asserts after the module")
        sent = (CodeFile(path=self._program, text=chosen.module), CodeFile(path=self._tests, text=tests))
        before = self._state.work.version.files if self._state.work.version else ()
        files = {file.path: file for file in before} | {one.path: await keep_file(one, blobs) for one in sent}
        ordered = tuple(files[path] for path in sorted(files))
        review = self._state.work.reviews[-1] if self._state.work.reviews else None
        confirmation = self._confirmation(self._choice)
        return VersionWritten(
            number=len(self._state.work.versions) + 1,
            files=ordered,
            tree=tree_of(ordered),
            note=confirmation.detail if confirmation else "",
            answers=answers_to(review, ""),
            confirmation=confirmation,
        )

    def _test_text(self, choice: ProgramChoice) -> str:
        """Stated examples with votes that most meet, or calls on which all agree; else the reply's own tests."""
        chosen = self._outcomes[choice.place]
        votes = [self._questions.votes[place] for place in believed_votes(self._outcomes, chosen)]
        near = [one.near for one in self._compared]
        agreed = (
            agreed_examples([one.call for one in self._compared], self._outcomes, chosen, near)
            if self._stated and not votes
            else []
        )
        examples = [*self._stated, *votes, *filter(None, map(example_of, agreed))]
        if not examples:
            return self._readings[choice.place].tests
        return test_module(self._module, (), [test_statement(one) for one in examples], self._wanted)

    def _confirmation(self, choice: ProgramChoice) -> Confirmation | None:
        if not choice.met:
            return None
        if self.is_believed:
            detail = f"{choice.alike} candidates behave alike on {pluralize(len(self._compared), 'call')}"
            return Confirmation(verdict="agreed", detail=detail)
        near = [one.near for one in self._compared]
        question = rival_question([one.call for one in self._compared], self._outcomes, choice, near)
        if question:
            return Confirmation(verdict="contradicted", detail=question)
        where = "only near the examples" if choice.alike >= ALIKE else "which is too few"
        detail = f"{choice.alike} of {choice.peers} candidates behave alike, {where}"
        return Confirmation(verdict="unconfirmed", detail=detail)


def earlier_answers(state: State, speaker: str) -> list[ModelAnswered]:
    """What the speaker said before this turn; nothing from before the person spoke, who may want something else."""
    now = state.floor.turn.answers if state.floor.turn else ()
    found: list[ModelAnswered] = []
    for one in state.talk.messages:
        if isinstance(one, PersonSpoke):
            found.clear()
        elif isinstance(one, ModelAnswered) and one.role == speaker and one not in now:
            found.append(one)
    return found


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
    askers: Sequence[Asker], model: Model, bus: Bus, state: State, messages: tuple[Message, ...]
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
        while count := draw.next_draws(member):
            if draw.count and exceeded_budget(state, state.budget, member.name):
                break
            askers = in_moods(member, draw.drawn, count, draw.draws_together)
            said = await ask_together(askers, model, bus, state, messages)
            for answer in said:
                state = await record(answer)
            draw.draws_together &= not any(
                asker.draws > 1 and not answer.answer.others
                for asker, answer in zip(askers, said, strict=False)
            )
            await draw.add(said, blobs)
        if (reason := draw.reason(member.name)) is not None:
            await record(reason)
        return await draw.result(member.name, blobs)

    return turn


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
