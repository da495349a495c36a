"""How many tasks are solved by the product's own intake and choice, from replies that were drawn once.

    python bench/draws.py SUITE DRAWS.jsonl.gz --cache FOLDER [--verdicts FILE]

DRAWS has a line for each reply: `task`, `draw` (0 is the one at temperature 0), `reply`, `prompt_tokens`,
`completion_tokens`. Every distinct program is tried once and judged once by the suite's hidden tests; both are kept in
the cache. Then n candidates, and draws that stop when a program is believed, are computed by replay: hidden tests
decide nothing but the score. `--verdicts` are judgements that were made before (`task`, `program`, `passed`).
"""

import argparse
import gzip
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from septet.agents.inputs import probes, seeds_from_calls
from septet.agents.trials import Questions, try_programs
from septet.common.values import Value
from septet.domain.state import State
from septet.evaluation.runs import judge
from septet.evaluation.suites import MODULE, EvalTask, read_suite
from septet.ports import Sandbox
from septet.settings.home import find_home
from septet.team.agreement import Outcomes, ProgramChoice, choose, is_believed
from septet.team.goal_examples import example_of, seen_as_stated, stated_examples, wanted_names
from septet.team.sorting import read_reply
from septet.ways.iterate.candidate_pool import DRAWS_AT_ONCE, MOST_VOTES
from septet.wiring.sandbox import open_job_runner

T = TypeVar("T", bound=Value)
TIMES = 12
"""How often candidates are chosen from the draws of a task."""


class Reply(msgspec.Struct):
    task: str
    draw: int = 0
    reply: str = ""
    kind: str = "code"
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Verdict(Value, omit_defaults=False):
    task: str
    program: str
    passed: bool


class Draw(Value, omit_defaults=False):
    program: str
    tokens: int
    prompt: int = 0
    """Of these, the tokens of the prompt."""


class Tried(Value, omit_defaults=False):
    """A task's draws, and what each distinct program did."""

    task: str
    near: tuple[bool, ...]
    draws: tuple[Draw, ...]
    outcomes: dict[str, Outcomes]
    has_examples: bool = True


def read_replies(path: Path) -> dict[str, list[Reply]]:
    found: dict[str, list[Reply]] = defaultdict(list)
    for line in gzip.decompress(path.read_bytes()).splitlines():
        one = msgspec.json.decode(line, type=Reply)
        if one.kind == "code" and one.reply:
            found[one.task].append(one)
    return {task: sorted(replies, key=lambda one: one.draw) for task, replies in found.items()}


async def try_task(task: EvalTask, replies: Sequence[Reply], sandbox: Sandbox) -> Tried:
    wanted = wanted_names(task.goal)
    readings = [read_reply(one.reply, wanted, MODULE) for one in replies]
    stated = stated_examples(task.goal)
    said = (example_of(text) for one in readings for text in one.asserts)
    votes = list(dict.fromkeys(one for one in said if one and one not in stated))[:MOST_VOTES]
    calls = probes(wanted[0], seeds_from_calls([one.call for one in stated], wanted[0])) if wanted else []
    questions = Questions(
        checks=tuple(stated),
        votes=tuple(votes),
        calls=tuple(seen_as_stated(one.call, stated) for one in calls),
    )
    programs = list(dict.fromkeys(one.module for one in readings if one.module))
    with tempfile.TemporaryDirectory() as folder:
        told = await try_programs(State(), programs, questions, sandbox, folder)
    draws = [
        Draw(
            program=one.module,
            tokens=reply.prompt_tokens + reply.completion_tokens,
            prompt=reply.prompt_tokens,
        )
        for one, reply in zip(readings, replies, strict=True)
    ]
    outcomes = dict(zip(programs, told, strict=True))
    return Tried(
        task=task.id,
        near=tuple(one.near for one in calls),
        draws=tuple(draws),
        outcomes=outcomes,
        has_examples=bool(stated),
    )


def pick(tried: Tried, draws: Sequence[Draw]) -> tuple[str, ProgramChoice | None]:
    """The program that the product would take of these draws."""
    readable = [one.program for one in draws if one.program]
    choice = choose([tried.outcomes[one] for one in readable], tried.near)
    return (readable[choice.place] if choice else ""), choice


def orders(tried: Tried) -> Iterator[list[Draw]]:
    """The draw at temperature 0 first, the others by chance."""
    chance = random.Random(tried.task)
    for _ in range(TIMES):
        yield [tried.draws[0], *chance.sample(tried.draws[1:], len(tried.draws) - 1)]


def curve(tasks: Sequence[Tried], passed: dict[tuple[str, str], bool]) -> None:
    """A line for each number of candidates: right, tokens against a single answer, the best possible."""
    count = min(len(one.draws) for one in tasks)
    single = sum(one.draws[0].tokens for one in tasks)
    for size in [one for one in (1, 2, 3, 4, 6, 8, 12, 16) if one <= count]:
        right = best = tokens = 0.0
        for task in tasks:
            for order in orders(task):
                draws = order[:size]
                right += passed.get((task.task, pick(task, draws)[0]), False) / TIMES
                best += any(passed.get((task.task, one.program), False) for one in draws) / TIMES
                tokens += sum(one.tokens for one in draws) / TIMES
        shares = f"{right:.1f} of {len(tasks)} right, {best:.1f} possible, {tokens / single:.1f} × tokens"
        print(f"{size:>2} candidates: {shares}")


def stopped(tasks: Sequence[Tried], passed: dict[tuple[str, str], bool], most: int) -> None:
    """Some draws at a time until a program is believed, as the pool of candidates does it: a request for several."""
    right = tokens = believed = believed_right = 0.0
    for task in tasks:
        for order in orders(task):
            size, program, sure = 0, "", False
            while size < most and not sure:
                requests = 1 if size else 2  # the very first answer has a temperature of its own
                tokens += requests * order[0].prompt / TIMES
                size = min(most, size + DRAWS_AT_ONCE)
                program, choice = pick(task, order[:size])
                sure = choice is not None and is_believed(choice, size, task.has_examples)
            good = passed.get((task.task, program), False)
            right += good / TIMES
            tokens += sum(one.tokens - one.prompt for one in order[:size]) / TIMES
            believed += sure / TIMES
            believed_right += (good and sure) / TIMES
    single = sum(one.draws[0].tokens for one in tasks)
    shares = f"{right:.1f} of {len(tasks)} right, {tokens / single:.1f} × tokens"
    print(f"at most {most:>2}, stopped when believed: {shares};")
    print(
        f"    believed {believed:.1f}, of these right {100 * believed_right / max(1.0, believed):.1f} %,",
        end=" ",
    )
    print(f"{100 * believed_right / max(1.0, right):.0f} % of the right ones")


async def main(options: argparse.Namespace) -> None:
    tasks = {one.id: one for one in read_suite(options.suite)}
    replies = {task: found for task, found in read_replies(options.draws).items() if task in tasks}
    sandbox = await open_job_runner(find_home())
    tried_file, verdict_file = options.cache / "tried.jsonl", options.cache / "verdicts.jsonl"
    tried = {one.task: one for one in read_lines(tried_file, Tried)}
    for task, found in replies.items():
        if task not in tried:
            tried[task] = await try_task(tasks[task], found, sandbox)
            append(tried_file, tried[task])
    known = [*read_lines(options.verdicts, Verdict), *read_lines(verdict_file, Verdict)]
    passed = {(one.task, one.program): one.passed for one in known}
    for task, one in tried.items():
        for program in one.outcomes:
            if (task, program) not in passed:
                right, _ = await judge(tasks[task], {f"{MODULE}.py": program}, sandbox)
                passed[task, program] = right
                append(verdict_file, Verdict(task=task, program=program, passed=right))
    most = max(len(one.draws) for one in tried.values())
    whole = [one for one in tried.values() if len(one.draws) == most]
    print(f"{len(whole)} tasks with {most} draws each; one answer: {single_right(whole, passed)} right")
    curve(whole, passed)
    for limit in (4, 8, 12, 16):
        stopped(whole, passed, min(limit, most))


def single_right(tasks: Sequence[Tried], passed: dict[tuple[str, str], bool]) -> int:
    return sum(passed.get((one.task, one.draws[0].program), False) for one in tasks)


def read_lines(path: Path | None, kind: type[T]) -> list[T]:
    return [msgspec.json.decode(line, type=kind) for line in path.open()] if path and path.exists() else []


def append(path: Path, value: Value) -> None:
    with path.open("a") as file:
        file.write(json.dumps(msgspec.to_builtins(value)) + "\n")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("suite")
    arguments.add_argument("draws", type=Path)
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--verdicts", type=Path)
    anyio.run(main, arguments.parse_args())
