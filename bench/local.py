"""How many easy goals the team reaches with the embedded model alone: no key, no network.

Run: python bench/local.py [--model local/qwen2.5-coder-1.5b] [--rounds 2] [--jobs 1] [GOAL …]

With `--model url:http://HOST:PORT/v1#NAME` the same team (`small_team.py`) asks that server. Every goal has tests that
the team never sees. A run that ends done and fails them ended done wrongly: that must not happen. Nothing is fetched:
`septet models get` does that.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

import anyio
from small_team import write_small_team

from septet.common.values import Value
from septet.domain.events import Recorded
from septet.domain.files import is_test
from septet.domain.reduce import fold
from septet.domain.runs import Job
from septet.domain.state import State
from septet.domain.teams import Budget
from septet.errors import SeptetError
from septet.sandboxes.ladder import choose_sandbox
from septet.wiring.api import Team


class Goal(Value):
    name: str
    text: str
    hidden: str


GOALS = (
    Goal(
        name="is_prime",
        text="write a function is_prime(n) with tests",
        hidden="assert [n for n in range(-3, 30) if is_prime(n)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]; "
        "assert not is_prime(49) and is_prime(97)",
    ),
    Goal(
        name="to_roman",
        text="write a function to_roman(n) that gives the Roman numeral of an integer from 1 to 3999, with tests",
        hidden="assert [to_roman(n) for n in (1, 4, 9, 14, 40, 90, 400, 1994, 3999)] == "
        "['I', 'IV', 'IX', 'XIV', 'XL', 'XC', 'CD', 'MCMXCIV', 'MMMCMXCIX']",
    ),
    Goal(
        name="word_count",
        text="write a function word_count(text) that returns a dict of how often each lower-cased word occurs; "
        "words are separated by white space; with tests",
        hidden="assert word_count('a B b\\n a  a') == {'a': 3, 'b': 2}; assert word_count('') == {}",
    ),
    Goal(
        name="csv_sum",
        text="write a function csv_sum(text, column) that adds up the numbers of the named column of CSV text "
        "whose first line is the header, and returns a float; with tests",
        hidden="assert csv_sum('a,b\\n1,2\\n3,4.5\\n', 'b') == 6.5; assert csv_sum('x\\n', 'x') == 0",
    ),
    Goal(
        name="balanced",
        text="write a function balanced(text) that tells whether the brackets ()[]{} in a text are balanced; "
        "other characters are ignored; with tests",
        hidden="assert balanced('') and balanced('a(b[c]{d})') and not balanced('([)]') and not balanced('(') "
        "and not balanced(']')",
    ),
    Goal(
        name="fizzbuzz",
        text="write a function fizzbuzz(n) that returns the list of strings for 1 to n: 'Fizz' for multiples of 3, "
        "'Buzz' for multiples of 5, 'FizzBuzz' for multiples of both, else the number; with tests",
        hidden="assert fizzbuzz(15)[-1] == 'FizzBuzz' and fizzbuzz(5) == ['1', '2', 'Fizz', '4', 'Buzz']; "
        "assert fizzbuzz(0) == []",
    ),
    Goal(
        name="is_palindrome",
        text="write a function is_palindrome(text) that ignores case and everything but letters and digits, "
        "with tests",
        hidden="assert is_palindrome('A man, a plan, a canal: Panama') and is_palindrome('') "
        "and not is_palindrome('abca') and is_palindrome('1b1')",
    ),
    Goal(
        name="fibonacci",
        text="write a function fibonacci(n) that returns the list of the first n Fibonacci numbers, "
        "starting with 0 and 1; with tests",
        hidden="assert fibonacci(8) == [0, 1, 1, 2, 3, 5, 8, 13]; assert fibonacci(0) == [] and fibonacci(1) == [0]",
    ),
    Goal(
        name="gcd",
        text="write a function gcd(a, b) that returns the greatest common divisor of two non-negative integers, "
        "with tests",
        hidden="assert gcd(12, 18) == 6 and gcd(7, 0) == 7 and gcd(0, 5) == 5 and gcd(17, 13) == 1",
    ),
    Goal(
        name="flatten",
        text="write a function flatten(items) that flattens arbitrarily nested lists into one list, with tests",
        hidden="assert flatten([1, [2, [3, []]], [[4]]]) == [1, 2, 3, 4]; assert flatten([]) == []",
    ),
)


class Outcome(Value):
    goal: str
    status: str
    right: bool
    tokens: int
    answers: int
    seconds: float


def team_for(model: str, folder: str) -> str:
    """An embedded model gets its team by itself."""
    if model.partition("/")[0] == "local":
        return "iterate"
    return str(write_small_team(Path(folder, "small.yaml")))


async def attempt(goal: Goal, model: str, rounds: int) -> Outcome:
    """One goal in a workspace of its own."""
    started = monotonic()
    log: list[Recorded] = []
    with (
        tempfile.TemporaryDirectory(prefix="septet-local-") as folder,
        tempfile.TemporaryDirectory(prefix="septet-local-team-") as beside,
    ):
        try:
            async with Team.load(team_for(model, beside), model=model, budget=Budget(rounds=rounds)) as team:
                # One by one: what came before an error counts too.
                async for recorded in team.run(goal.text, workspace=folder):
                    log.append(recorded)  # noqa: PERF401  # see above
        except SeptetError as error:
            print(f"{goal.name}: {error}", file=sys.stderr)
        seconds = monotonic() - started
        state = fold(log)
        return Outcome(
            goal=goal.name,
            status=state.ended.reason if state.ended else "unfinished",
            right=await passes(goal, state, folder),
            tokens=state.spending.total.usage.total,
            answers=state.spending.total.answers,
            seconds=seconds,
        )


async def passes(goal: Goal, state: State, folder: str) -> bool:
    """Whether the newest version passes the tests that the team never saw, run in the same sandbox."""
    files = state.work.files
    modules = [file.path.removesuffix(".py") for file in files if not is_test(file.path)]
    if not modules:
        return False
    code = f"from {modules[0].replace('/', '.')} import *\n{goal.hidden}"
    sandbox = await choose_sandbox()
    result = await sandbox.run(Job(command=("python", "-c", code), workspace=folder))
    return result.succeeded


async def run(model: str, rounds: int, names: list[str], jobs: int) -> int:
    outcomes: list[Outcome] = []
    limiter = anyio.CapacityLimiter(jobs)

    async def one(goal: Goal) -> None:
        async with limiter:
            done = await attempt(goal, model, rounds)
        outcomes.append(done)
        hidden = "pass" if done.right else "fail"
        row = f"| {done.goal} | {done.status} | {hidden} | {done.tokens} | {done.answers} | {done.seconds:.0f} |"
        print(row, flush=True)

    print("| goal | ended | hidden tests | tokens | answers | seconds |\n|---|---|---|---|---|---|")
    started = monotonic()
    async with anyio.create_task_group() as group:
        for goal in GOALS:
            if not names or goal.name in names:
                group.start_soon(one, goal)
    done = [one for one in outcomes if one.status == "done"]
    wrong = [one.goal for one in done if not one.right]
    print(
        f"\n{sum(one.right for one in outcomes)} of {len(outcomes)} are right; "
        f"{len(done)} ended done, {len(wrong)} of them wrongly {wrong or ''}"
    )
    print(f"{sum(one.tokens for one in outcomes)} tokens, {monotonic() - started:.0f} s")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Easy goals on the embedded model, judged by hidden tests.")
    parser.add_argument("--model", default="local/qwen2.5-coder-1.5b")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="goals at once")
    parser.add_argument("goals", nargs="*")
    given = parser.parse_args()
    return anyio.run(run, given.model, given.rounds, given.goals, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
