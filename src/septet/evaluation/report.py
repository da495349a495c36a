"""What an evaluation found: pass rates with their uncertainty, what it cost, and where *done* was wrong. Pure."""

import html
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from septet.common.values import Value

Mode = Literal["single", "team"]
MODES: tuple[Mode, ...] = ("single", "team")
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
    """The same tasks done twice; `p` is how likely a difference of this size is by chance (exact test)."""

    tasks: int
    only_single: int
    only_team: int
    p: float


class Against(Value, omit_defaults=False):
    """The same tasks in the same mode, here and in other results."""

    mode: str
    tasks: int
    only_here: int
    only_there: int
    p: float


class Report(Value, omit_defaults=False):
    suite: str
    model: str
    team: str
    modes: Mapping[str, ModeSummary]
    comparison: Comparison | None = None
    against: Sequence[Against] = ()
    """Beside the results that `--against` names."""
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
    tasks, only_single, only_team = count_pairs(single, team)
    p = sign_test(only_single, only_team)
    return Comparison(tasks=tasks, only_single=only_single, only_team=only_team, p=p) if tasks else None


def compare_with(here: Sequence[TaskResult], there: Sequence[TaskResult]) -> list[Against]:
    """Each mode that both have."""
    found: list[Against] = []
    for mode in MODES:
        tasks, only_here, only_there = count_pairs(
            [one for one in here if one.mode == mode], [one for one in there if one.mode == mode]
        )
        if tasks:
            p = sign_test(only_here, only_there)
            found.append(Against(mode=mode, tasks=tasks, only_here=only_here, only_there=only_there, p=p))
    return found


def count_pairs(first: Sequence[TaskResult], second: Sequence[TaskResult]) -> tuple[int, int, int]:
    """Tasks that both did, and those that only one of them passed (for McNemar's exact test)."""
    one = {result.task: result.passed for result in first}
    other = {result.task: result.passed for result in second}
    both = one.keys() & other.keys()
    only_one = sum(one[task] and not other[task] for task in both)
    only_other = sum(other[task] and not one[task] for task in both)
    return len(both), only_one, only_other


def sign_test(one: int, other: int) -> float:
    """How likely it is that a fair coin falls at least as unevenly."""
    total, most = one + other, max(one, other)
    tail = sum(math.comb(total, count) for count in range(most, total + 1))
    return min(1.0, 2 * tail / 2**total)


def build_eval_report(
    suite: str, model: str, team: str, results: Sequence[TaskResult], cpu_seconds: float
) -> Report:
    by_mode = {mode: [one for one in results if one.mode == mode] for mode in MODES}
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
    for one in report.against:
        only = f"only here passes {one.only_here}, only there {one.only_there}"
        lines.append(f"against {one.mode}, {one.tasks} tasks: {only} (p = {one.p:.3f})")
    lines.append(f"cpu     {report.cpu_seconds:.1f} s for Septet and the programs that it ran")
    return "\n".join(lines)


PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }}
td, th {{ padding: .2rem .5rem; border-bottom: 1px solid #d8dee4; text-align: left; vertical-align: top; }}
.yes {{ color: #116329; }} .no {{ color: #a40e26; }} pre {{ white-space: pre-wrap; }} svg text {{ font-size: 12px; }}
</style><h1>{title}</h1><pre>{summary}</pre>{chart}
<table><tr><th>task<th>mode<th>hidden tests<th>ended<th>calls<th>tokens<th>seconds<th>chat</tr>{rows}</table></html>
"""
BAR = 420
"""Pixels of a rate of 100 %."""


def report_html(report: Report, results: Sequence[TaskResult]) -> str:
    """One file: the summary, the rates with their intervals as a picture, and every task."""
    title = html.escape(f"{report.suite} · {report.model} · team {report.team}")
    rows = "".join(result_row(one) for one in sorted(results, key=lambda one: (one.task, one.mode)))
    summary = html.escape(report_text(report).partition("\n")[2])
    return PAGE.format(title=title, summary=summary, chart=rate_chart(report.modes), rows=rows)


def result_row(one: TaskResult) -> str:
    verdict = '<td class="yes">✓ pass' if one.passed else f'<td class="no">✗ {html.escape(one.detail[:200])}'
    cells = [one.status, one.calls, one.tokens, f"{one.seconds:.1f}", one.chat]
    rest = "".join(f"<td>{html.escape(str(cell))}" for cell in cells)
    return f"<tr><td>{html.escape(one.task)}<td>{one.mode}{verdict}{rest}</tr>"


def rate_chart(modes: Mapping[str, ModeSummary]) -> str:
    """A bar a mode; the line over it is the interval."""
    parts: list[str] = []
    for place, (mode, one) in enumerate(modes.items()):
        top = 8 + 34 * place
        low, high = 70 + BAR * one.low, 70 + BAR * one.high
        parts.append(
            f'<text x="0" y="{top + 15}">{mode}</text>'
            f'<rect x="70" y="{top}" width="{BAR * one.rate:.1f}" height="20" fill="#218bff"/>'
            f'<path d="M{low:.1f} {top + 10}H{high:.1f}" stroke="#1b1f24" stroke-width="2"/>'
            f'<text x="{high + 8:.1f}" y="{top + 15}">{100 * one.rate:.1f} %</text>'
        )
    label = "Pass rates with their 95 % intervals"
    return f'<svg role="img" aria-label="{label}" width="600" height="{16 + 34 * len(modes)}">{"".join(parts)}</svg>'
