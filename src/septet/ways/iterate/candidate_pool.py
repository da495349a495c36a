"""The candidates of a function that a small model has written in a chat, compared by what they do.

Programs are chosen by what the goal states, then by how many behave alike. Where the goal states no example and they do
not agree, the model is asked what a call on which they differ must return: one that most of its answers and the largest
group of programs give counts like an example; if most answers want what another group gives, nothing is believed.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import compress

from msgspec.structs import replace

from septet.agents.inputs import Probe, probes, seeds_from_calls, seeds_from_signature
from septet.agents.reply_files import keep_file
from septet.agents.trials import Questions
from septet.common.text import pluralize
from septet.domain.events import (
    Confirmation,
    DecisionRecorded,
    ModelAnswered,
    PersonSpoke,
    ReplyRefused,
    VersionWritten,
)
from septet.domain.files import tree_of
from septet.domain.replies import CodeFile
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Blobs
from septet.team.agreement import (
    ALIKE,
    MOST_DRAWS,
    Outcomes,
    ProgramChoice,
    agreed_examples,
    believed_votes,
    choose,
    disputed_call,
    is_believed,
    rival_question,
    undisputed,
)
from septet.team.goal_examples import StatedExample, example_of, seen_as_stated, stated_examples
from septet.team.reviews import answers_to
from septet.team.small_form import file_names, functions_of
from septet.team.sorting import REASONS, SortedReply, read_reply, test_module, test_statement

MOST_VOTES = 40
DRAWS_AT_ONCE = 4
"""As many as a small model's server answers at the same time."""
MOST_QUESTIONS = 3
OPINIONS, MOST_OF_THEM = 8, 6
"""Answers to one question, and how many of them must be the same."""

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
        self._opinions: Counter[StatedExample] = Counter()
        self._opinions_read = 0
        self._doubted = False
        """Whether the model wants of a call what another group of programs gives."""
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
        if self._choice is None or self._doubted:
            return False
        return is_believed(self._choice, self.drawn, bool(self._stated))

    def question(self) -> str:
        """A call of which the model shall say what it must return; empty where that is not asked (any more)."""
        asked = -(-self._opinions_read // OPINIONS)
        settled = self._stated or self._doubted or self.is_believed or asked >= MOST_QUESTIONS
        if self._choice is None or settled or self.drawn < MOST_DRAWS:
            return ""
        near = [one.near and one.call not in self._calls_asked for one in self._compared]
        return disputed_call([one.call for one in self._compared], self._outcomes, self._choice, near)

    @property
    def _calls_asked(self) -> set[str]:
        return {one.call for one in self._opinions}

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
        if self.drawn >= MOST_DRAWS:
            self._read_opinion(text)
            return
        self.drawn += 1
        reading = read_reply(text, self._wanted, self._module)
        if reading.cause:
            self._refused = REASONS.get(reading.cause, f"{', '.join(self._wanted)} is not defined")
            return
        self._readings.append(reading)
        self._fresh = True

    def _read_opinion(self, text: str) -> None:
        """Nothing but opinions is asked for once all programs are drawn."""
        self._opinions_read += 1
        self._fresh = True
        found = filter(None, map(example_of, read_reply(text).asserts[:1]))
        self._opinions.update(found)

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
        """Choose among programs by what they did with the probes that count, and by what the model wants of calls."""
        near = [one.near for one in self._probes]
        counts = [True] * len(near) if self._stated else undisputed(outcomes, near)
        self._compared = list(compress(self._probes, counts))
        near = [one.near for one in self._compared]
        programs = [replace(one, probes=tuple(compress(one.probes, counts))) for one in outcomes]
        chosen = choose(programs, near, by_group=not self._stated)
        if chosen is None:
            return
        wanted = [
            place for place, one in enumerate(self._questions.votes) if self._opinions[one] >= MOST_OF_THEM
        ]
        met = [place for place in wanted if programs[chosen.place].votes[place]]
        self._doubted = any(one.votes[place] for place in wanted if place not in met for one in programs)
        self._outcomes = [
            replace(one, checks=(*one.checks, *(one.votes[place] for place in met))) for one in programs
        ]
        self._choice = choose(self._outcomes, near, by_group=not self._stated)

    def _votes(self) -> tuple[StatedExample, ...]:
        """Examples that a model invented: what it was asked for, the planner's guesses, and what candidates assert."""
        plan = self._state.plan.current
        said = [*(plan.guesses if plan else ()), *(text for one in self._readings for text in one.asserts)]
        known = {one.call for one in self._stated}
        found = Counter(one for text in said if (one := example_of(text)) and one.call not in known)
        asked = [one for one, count in self._opinions.items() if count >= MOST_OF_THEM]
        return tuple(dict.fromkeys((*asked, *(one for one, _ in found.most_common(MOST_VOTES)))))

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
        met = sum(self._outcomes[self._choice.place].checks[: len(self._stated)])
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
