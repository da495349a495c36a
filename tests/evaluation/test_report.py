"""What an evaluation says of its results."""

import pytest
from msgspec.structs import replace

from septet.evaluation.report import (
    BAR,
    Mode,
    TaskResult,
    build_eval_report,
    compare,
    compare_with,
    interval,
    rate_chart,
    report_html,
    report_text,
    sign_test,
)


def result(task: str, mode: Mode, passed: bool, status: str = "") -> TaskResult:
    unreadable = {} if passed else {"no code": 1}
    return TaskResult(
        task=task,
        mode=mode,
        passed=passed,
        status=status,
        calls=2,
        tokens=10,
        replies=2,
        unreadable=unreadable,
    )


RESULTS = [
    result("a", "single", True),
    result("b", "single", False),
    result("c", "single", False),
    result("a", "team", True, "done"),
    result("b", "team", True, "bound"),
    result("c", "team", False, "done"),
]


def test_wrongly_done_and_wrongly_given_up_are_counted() -> None:
    report = build_eval_report("s", "m", "t", RESULTS, 1.0)
    team = report.modes["team"]
    assert (team.tasks, team.passed, team.done, team.wrongly_done, team.wrongly_given_up) == (3, 2, 2, 1, 1)
    assert (team.calls, team.tokens, team.replies, team.unreadable) == (6, 30, 6, {"no code": 1})
    assert team.ends == {"done": 2, "bound": 1}
    assert report.modes["single"].wrongly_given_up == 0
    text = report_text(report)
    assert "2/3 pass = 66.7 %" in text
    assert "done 2, of these wrong 1; right but not done 1" in text


def test_modes_are_compared_by_the_tasks_that_both_did() -> None:
    found = compare(RESULTS[:2], RESULTS[3:])
    assert found is not None
    assert (found.tasks, found.only_single, found.only_team) == (2, 0, 1)
    assert compare(RESULTS[:3], []) is None


@pytest.mark.parametrize(
    ("one", "other", "p"), [(0, 0, 1.0), (5, 5, 1.0), (0, 5, 0.0625), (1, 9, 0.021484375)]
)
def test_the_exact_test_is_that_of_a_fair_coin(one: int, other: int, p: float) -> None:
    assert sign_test(one, other) == pytest.approx(p)


def test_the_interval_is_wilsons() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(91, 164) == pytest.approx((0.4784, 0.6286), abs=1e-3)
    assert interval(10, 10)[1] == 1.0


def test_results_are_compared_task_by_task_with_earlier_ones() -> None:
    earlier = [result("a", "team", False), result("b", "team", False), result("d", "team", True)]
    (found,) = compare_with(RESULTS, earlier)
    assert (found.mode, found.tasks, found.only_here, found.only_there) == ("team", 2, 2, 0)
    assert found.p == sign_test(2, 0)


def test_a_page_shows_every_task_and_nothing_of_it_acts() -> None:
    hostile = result("<script>x</script>", "team", False, "done")
    page = report_html(build_eval_report("s", "m", "t", [*RESULTS, hostile], 1.0), [*RESULTS, hostile])
    assert "<script" not in page
    assert page.count("<tr><td>") == len(RESULTS) + 1
    assert page.count("<rect") == 2


def test_rates_are_a_picture_with_a_bar_and_an_interval_a_mode() -> None:
    results = [result("a", "single", True), result("b", "single", False)]
    summary = build_eval_report("s", "m", "t", results, 0.0).modes["single"]
    half = replace(summary, rate=0.5, low=0.25, high=0.75)
    chart = rate_chart({"single": half, "team": replace(half, rate=1.0, high=1.0)})
    assert 'width="600" height="84">' in chart
    assert rate_chart({"single": half}).count('height="50">') == 1
    low, rate, high = (f"{70 + BAR * one:.1f}" for one in (0.25, 0.5, 0.75))
    assert f'<text x="0" y="23">single</text><rect x="70" y="8" width="{BAR * 0.5:.1f}" height="20"' in chart
    assert f'<path d="M{low} 18H{high}"' in chart
    assert f'<text x="{float(high) + 8:.1f}" y="23">50.0 %</text>' in chart
    assert '<text x="0" y="57">team</text><rect x="70" y="42"' in chart
    assert rate != low
