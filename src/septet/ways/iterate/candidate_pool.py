"""The programs that a small model has drawn for a function, over all rounds: evidence chooses among them.

Nothing that was drawn is lost: a later round adds candidates, and the best of all is the version, never the newest
by default.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from septet.agents.inputs import Probe, probes, seeds_from_calls, seeds_from_signature
from septet.agents.replies import keep_file
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
from septet.team.agreement import Choice, Outcomes, believed_votes, choose, open_question
from septet.team.goal_examples import StatedExample, example_of, stated_examples
from septet.team.reviews import answers_to
from septet.team.small_form import file_names, functions_of
from septet.team.sorting import REASONS, Reading, read_reply, test_module, test_statement

MOST_VOTES = 40
ALIKE = 3
"""So many programs that behave alike are believed, as long as no other one behaves otherwise anywhere."""
MOST_DRAWS = 12
"""Of a chat. Replayed over 378 tasks, more draws cost more than they bring."""

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
        self._readings: list[Reading] = []
        self._outcomes: list[Outcomes] = []
        self._questions = Questions()
        self._probes: list[Probe] = []
        self._choice: Choice | None = None
        self._fresh = False
        self._drawn = 0
        self._refused = "no candidate could be read"
        self.count = 0
        for answer in earlier_answers(state, member.name):
            self._read(answer)

    def next_draws(self, member: RoleSpec) -> int:
        """Two at once, as long as no program is believed."""
        left = min(member.candidates - self.count, MOST_DRAWS - self._drawn)
        return 0 if self.is_believed else max(0, min(2, left))

    @property
    def is_believed(self) -> bool:
        """Every stated example is met, enough programs behave alike, and none that meets as many otherwise."""
        one = self._choice
        return one is not None and one.met and one.alike >= ALIKE and one.support >= 1

    async def add(self, said: Sequence[ModelAnswered], blobs: Blobs) -> None:
        """Take answers in and choose anew among all."""
        self.count += len(said)
        for one in said:
            self._read(one)
        if self._fresh:
            await self._judge()

    def _read(self, said: ModelAnswered) -> None:
        self._drawn += 1
        reading = read_reply(said.answer.text, self._wanted, self._module)
        if reading.cause:
            self._refused = REASONS.get(reading.cause, f"{', '.join(self._wanted)} is not defined")
            return
        self._readings.append(reading)
        self._fresh = True

    async def _judge(self) -> None:
        """Try all programs: the asserts of new ones are questions to the others too."""
        self._fresh = False
        votes = self._votes()
        self._probes = self._probes or self._new_probes(votes)
        calls = tuple(one.call for one in self._probes)
        self._questions = Questions(checks=self._stated, votes=votes, calls=calls)
        programs = list(dict.fromkeys(one.module for one in self._readings))
        told = await self._observe(self._state, programs, self._questions)
        by_program = dict(zip(programs, told, strict=True))
        self._outcomes = [by_program[one.module] for one in self._readings]
        self._choice = choose(self._outcomes, [one.near for one in self._probes])

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
        alike = f"{self._choice.alike} of {self._choice.peers} behave alike on {len(self._probes)} calls"
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

    def _test_text(self, choice: Choice) -> str:
        """Stated examples and the votes that most programs meet; else the chosen reply's own tests."""
        votes = believed_votes(self._outcomes, self._outcomes[choice.place])
        examples = [*self._stated, *(self._questions.votes[place] for place in votes)]
        if not examples:
            return self._readings[choice.place].tests
        return test_module(self._module, (), [test_statement(one) for one in examples])

    def _confirmation(self, choice: Choice) -> Confirmation | None:
        if not choice.met:
            return None
        if self.is_believed:
            detail = f"{choice.alike} candidates behave alike on {pluralize(len(self._probes), 'call')}"
            return Confirmation(verdict="agreed", detail=detail)
        near = [one.near for one in self._probes]
        question = open_question([one.call for one in self._probes], self._outcomes, choice, near)
        return Confirmation(verdict="contradicted" if question else "unconfirmed", detail=question)


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
