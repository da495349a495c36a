"""What an evaluation found: pass rates with their uncertainty, what it cost, and where *done* was wrong. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from septet.common.values import Value

Mode = Literal["single", "team"]
Z = 1.96
"""For an interval that holds the true rate in 95 of 100 cases."""


class TaskResult(Value, omit_defaults=False):
    """How one task went in one mode."""

    task: str
    mode: Mode
    passed: bool
    status: str = ""
    """How the chat ended; a single answer has no end of its own."""
    detail: str = ""
    chat: str = ""
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    replies: int = 0
    """Replies that should have held code."""
    unreadable: Mapping[str, int] = {}
    """Those that did not, by cause."""


class ModeSummary(Value, omit_defaults=False):
    tasks: int
    passed: int
    rate: float
    low: float
    high: float
    done: int
    wrongly_done: int
    """Called done, and the hidden tests fail."""
    wrongly_given_up: int
    """Not called done, although the hidden tests pass."""
    calls: int
    tokens: int
    cost: float
    seconds: float
    replies: int
    unreadable: Mapping[str, int]
    ends: Mapping[str, int]


class Comparison(Value, omit_defaults=False):
    """The same tasks in two modes; `p` is how likely a difference of this size is by chance (exact test)."""

    tasks: int
    only_single: int
    only_team: int
    p: float


class Report(Value, omit_defaults=False):
    suite: str
    model: str
    team: str
    modes: Mapping[str, ModeSummary]
    comparison: Comparison | None = None
    cpu_seconds: float = 0.0
    """Of Septet and the programs that it ran, in this call; not of the model."""


def summarize(results: Sequence[TaskResult]) -> ModeSummary:
    passed = sum(one.passed for one in results)
    low, high = interval(passed, len(results))
    done = [one for one in results if one.status == "done"]
    unreadable = Counter[str]()
    for one in results:
        unreadable.update(one.unreadable)
    return ModeSummary(
        tasks=len(results),
        passed=passed,
        rate=passed / len(results) if results else 0.0,
        low=low,
        high=high,
        done=len(done),
        wrongly_done=sum(not one.passed for one in done),
        wrongly_given_up=sum(one.passed and one.status not in ("done", "") for one in results),
        calls=sum(one.calls for one in results),
        tokens=sum(one.tokens for one in results),
        cost=sum(one.cost for one in results),
        seconds=sum(one.seconds for one in results),
        replies=sum(one.replies for one in results),
        unreadable=dict(sorted(unreadable.items())),
        ends=dict(Counter(one.status for one in results if one.status)),
    )


def interval(passed: int, total: int) -> tuple[float, float]:
    """Wilson's interval: it holds for few tasks and for rates near 0 and 1."""
    if not total:
        return 0.0, 1.0
    rate, square = passed / total, Z * Z
    middle = (rate + square / (2 * total)) / (1 + square / total)
    reach = Z * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def compare(single: Sequence[TaskResult], team: Sequence[TaskResult]) -> Comparison | None:
    """Only tasks that were done in both modes count (McNemar's exact test)."""
    first = {one.task: one.passed for one in single}
    second = {one.task: one.passed for one in team}
    both = first.keys() & second.keys()
    if not both:
        return None
    only_single = sum(first[task] and not second[task] for task in both)
    only_team = sum(second[task] and not first[task] for task in both)
    return Comparison(
        tasks=len(both), only_single=only_single, only_team=only_team, p=sign_test(only_single, only_team)
    )


def sign_test(one: int, other: int) -> float:
    """How likely it is that a fair coin falls at least as unevenly."""
    total, most = one + other, max(one, other)
    tail = sum(math.comb(total, count) for count in range(most, total + 1))
    return min(1.0, 2 * tail / 2**total)


def report_of(suite: str, model: str, team: str, results: Sequence[TaskResult], cpu_seconds: float) -> Report:
    modes: tuple[Mode, ...] = ("single", "team")
    by_mode = {mode: [one for one in results if one.mode == mode] for mode in modes}
    return Report(
        suite=suite,
        model=model,
        team=team,
        modes={mode: summarize(found) for mode, found in by_mode.items() if found},
        comparison=compare(by_mode["single"], by_mode["team"]),
        cpu_seconds=cpu_seconds,
    )


def report_text(report: Report) -> str:
    """A table for people."""
    lines = [f"{report.suite} · {report.model} · team {report.team}"]
    for mode, one in report.modes.items():
        lines.append(
            f"{mode:<7} {one.passed}/{one.tasks} pass = {100 * one.rate:.1f} % "
            f"({100 * one.low:.1f} to {100 * one.high:.1f}) · {one.calls} calls · {one.tokens} tokens · "
            f"{one.seconds:.0f} s"
        )
        if mode == "team":
            ends = ", ".join(f"{reason} {count}" for reason, count in one.ends.items())
            lines.append(
                f"        done {one.done}, of these wrong {one.wrongly_done}; right but not done "
                f"{one.wrongly_given_up}; ends: {ends}"
            )
        if one.unreadable:
            causes = ", ".join(f"{cause} {count}" for cause, count in one.unreadable.items())
            lines.append(
                f"        unreadable {sum(one.unreadable.values())} of {one.replies} replies: {causes}"
            )
    if report.comparison is not None:
        both = report.comparison
        only = f"only single passes {both.only_single}, only team {both.only_team}"
        lines.append(f"both    {both.tasks} tasks: {only} (p = {both.p:.3f})")
    lines.append(f"cpu     {report.cpu_seconds:.1f} s for Septet and the programs that it ran")
    return "\n".join(lines)
