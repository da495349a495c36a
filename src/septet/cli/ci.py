"""`ci` and `review`: for pipelines, without questions and downloads."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from septet.cli.options import Amount, Duration, Folder
from septet.cli.output import notify, put_exactly

if TYPE_CHECKING:
    from septet.protocols.ci import Change, CiOptions

FILE: click.Path = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True)
class Shared:
    """The options that both commands have."""

    model: str
    max_cost: float | None
    max_time: float | None
    as_json: bool
    junit: Path | None
    quiet: bool

    def options(self, team: str, rounds: int | None = None) -> "CiOptions":
        from septet.protocols import ci as pipelines

        return pipelines.CiOptions(
            team=team, model=self.model, rounds=rounds, cost=self.max_cost, seconds=self.max_time
        )

    def tell(self, line: str) -> None:
        if not self.quiet:
            notify(line)

    def put(self, result: object, text: str) -> None:
        import msgspec

        put_exactly(msgspec.json.encode(result).decode() if self.as_json else text)


class Outputs(TypedDict):
    sarif_file: Path | None
    fail_on: str
    shared: Shared


def ci_options(command: Callable[..., int]) -> Callable[..., int]:
    """Collect the options that both commands have into the command's `shared` argument."""

    @wraps(command)
    def with_shared(**given: object) -> int:
        own = {field.name: given.pop(field.name) for field in fields(Shared)}
        return command(shared=Shared(**own), **given)  # pyright: ignore[reportArgumentType]  # click has checked them

    for option in (
        click.option("-m", "--model", default="", envvar="SEPTET_MODEL", help="The model of the members."),
        click.option("--max-cost", type=Amount(), metavar="USD", help="The maximum cost in dollars."),
        click.option("--max-time", type=Duration(), help="The maximum working time: 90s, 20m, 1.5h."),
        click.option("--json", "as_json", is_flag=True, help="The result as one JSON object on stdout."),
        click.option("--junit", type=FILE, metavar="FILE", help="Write a JUnit report."),
        click.option("-q", "--quiet", is_flag=True, help="No progress on stderr."),
    ):
        with_shared = option(with_shared)
    return with_shared


@click.command(epilog="Example: septet ci 'fix the failing test' -C . --json --junit septet.xml")
@click.argument("goal")
@click.option("-C", "workspace", type=Folder(), help="The folder to work on (a new one).")
@click.option("-t", "--team", default="iterate", show_default=True, help="A team's name or a team.yaml.")
@click.option("--rounds", type=click.IntRange(1), help="The maximum number of versions.")
@ci_options
def ci(goal: str, workspace: Path | None, team: str, rounds: int | None, shared: Shared) -> int:
    """Build GOAL in a pipeline: nothing is asked, downloaded or installed.

    Proven work is written into the folder; the exit code is 0 only then. Each requirement is a case of the report.
    """
    import anyio

    from septet.chat.results import result_of
    from septet.protocols.ci import junit, result_cases, run_unattended, unattended_team
    from septet.wiring.session import open_session

    async def work() -> int:
        async with open_session() as session:
            spec = await unattended_team(session, shared.options(team, rounds))
            result = result_of(await run_unattended(session, goal, spec, workspace, shared.tell))
        if shared.junit:
            shared.junit.write_bytes(junit("septet ci", result_cases(result)))
        shared.put(result, f"{result.chat}: {result.status}")
        return result.exit_code

    return anyio.run(work)


@click.command(epilog="Example: septet review main --sarif review.sarif")
@click.argument("base", required=False)
@click.option("--head", default="HEAD", show_default=True, help="The branch or commit to review.")
@click.option("--staged", is_flag=True, help="Review what is staged, as before a commit.")
@click.option("--diff", "patch", type=click.Path(path_type=Path), help="Review a patch of HEAD; - is stdin.")
@click.option("-C", "workspace", type=Folder(), default=".", help="The repository.")
@click.option("--sarif", "sarif_file", type=FILE, metavar="FILE", help="Write the findings as SARIF.")
@click.option(
    "--fail-on",
    type=click.Choice(["proven", "must", "should", "nice", "never"]),
    default="proven",
    show_default=True,
    help="What makes the exit code 3: what a failing test has proven, or a severity.",
)
@ci_options
def review(
    base: str | None, head: str, staged: bool, patch: Path | None, workspace: Path, **given: Unpack[Outputs]
) -> int:
    """Review what a branch changes since BASE, and prove what is wrong by failing tests. Nothing is written.

    The reviewer sees a copy of the changed project. Its tests are run there and on a copy of the project before.
    """
    import anyio

    from septet.protocols.ci import branch_change, patch_change

    if sum((base is not None, staged, patch is not None)) != 1:
        raise click.UsageError("name a BASE, or use --staged or --diff FILE")

    def find_change(made: Path) -> "Change":
        if base is not None:
            return branch_change(workspace, base, head, made)
        return patch_change(workspace, read_patch(patch) if patch else None, made)

    return anyio.run(run_review, find_change, given)


async def run_review(find_change: "Callable[[Path], Change]", outputs: Outputs) -> int:
    from septet.common.temporary import temporary_folder
    from septet.protocols.ci import failing, finding_cases, finding_text, junit, review_change, sarif
    from septet.wiring.session import open_session

    shared, threshold = outputs["shared"], outputs["fail_on"]
    with temporary_folder("review") as made:
        async with open_session() as session:
            report = await review_change(session, find_change(made), shared.options("assistant"), shared.tell)
    if file := outputs["sarif_file"]:
        file.write_bytes(sarif(report.findings))
    if shared.junit:
        shared.junit.write_bytes(junit("septet review", finding_cases(report, threshold)))
    shared.put(report, "\n".join(map(finding_text, report.findings)) or "no findings")
    return 3 if failing(report.findings, threshold) else 0


def read_patch(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read ({error.strerror})") from error
