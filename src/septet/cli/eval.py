"""`eval`: a team measured by tasks with hidden tests, beside one answer of the same model."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from septet.domain.teams import TeamSpec
    from septet.evaluation.report import Mode, Report
    from septet.evaluation.suites import EvalTask

MODES: "dict[str, tuple[Mode, ...]]" = {"single": ("single",), "team": ("team",), "both": ("single", "team")}


@click.command("eval", epilog="Example: septet eval small -m local/qwen2.5-coder-1.5b --tasks 4")
@click.argument("suite")
@click.option("-m", "--model", default="", help="The model of every member.")
@click.option("-t", "--team", default="iterate", help="A team's name or a team.yaml (iterate).")
@click.option(
    "--mode", type=click.Choice(list(MODES)), default="both", help="One answer, the team, or both (both)."
)
@click.option("--tasks", type=click.IntRange(1), help="How many tasks, chosen by the seed (all).")
@click.option("--seed", default=0, help="Which tasks are chosen (0).")
@click.option("--jobs", type=click.IntRange(1), default=1, help="How many tasks at once (1).")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of results; a second call continues it.",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Compare with these earlier results, task by task.",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as a page to this file."
)
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--unsafe-local", is_flag=True, help="Run code WITHOUT a sandbox, with your rights.")
def evaluate(  # noqa: PLR0913  # one parameter an option
    *,
    suite: str,
    model: str,
    team: str,
    mode: str,
    tasks: int | None,
    seed: int,
    jobs: int,
    out: Path | None,
    against: Path | None,
    html: Path | None,
    as_json: bool,
    unsafe_local: bool,
) -> int:
    """Measure a team by SUITE: how many tasks pass hidden tests, at what cost, and how often *done* was wrong.

    SUITE is a .jsonl file, a folder of tasks, or `small`, which comes with Septet.
    """
    import anyio
    import msgspec

    from septet.cli.output import print_text, put_exactly
    from septet.evaluation.report import report_text
    from septet.evaluation.suites import read_suite, sample_tasks
    from septet.settings.team_files import check_team, load_team

    chosen, loaded = sample_tasks(read_suite(suite), tasks, seed), check_team(load_team(team))

    async def work() -> "Report":
        order = EvalOrder(Path(suite).name, chosen, model, loaded, MODES[mode], jobs, out, against, html)
        return await measure(order, unsafe_local)

    report = anyio.run(work)
    put_exactly(msgspec.json.encode(report).decode()) if as_json else print_text(report_text(report))
    return 0


class EvalOrder(NamedTuple):
    """What is to be measured: tasks, who does them, how, how many at a time, and where the results go."""

    suite: str
    tasks: "Sequence[EvalTask]"
    model: str
    team: "TeamSpec"
    modes: "Sequence[Mode]"
    jobs: int
    out: Path | None
    against: Path | None
    html: Path | None


async def measure(order: EvalOrder, unsafe_local: bool) -> "Report":
    from msgspec.structs import replace

    from septet.cli.output import notify
    from septet.evaluation.report import build_eval_report, compare_with, report_html
    from septet.evaluation.runs import Evaluation, Head, ResultFile, cpu_seconds, read_results
    from septet.wiring.session import open_session

    before, earlier = cpu_seconds(), read_results(order.against) if order.against else []
    async with open_session() as session:
        spec = await session.with_models(order.team, order.model)
        head = Head(suite=order.suite, model=order.model, team=spec.name)
        file = ResultFile(order.out or session.home.data / "evaluations" / head.file_name, head)
        notify(f"septet: {len(order.tasks)} tasks; results go to {file.path}")
        evaluation = Evaluation(session, await session.sandbox(unsafe_local), spec, file)
        await evaluation.run(order.tasks, order.modes, order.jobs, notify)
    results = evaluation.results(order.tasks)
    report = build_eval_report(head.suite, head.model, head.team, results, cpu_seconds() - before)
    report = replace(report, against=compare_with(results, earlier))
    if order.html:
        order.html.write_text(report_html(report, results))
        notify(f"septet: the report is in {order.html}")
    return report
