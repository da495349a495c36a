"""`doctor`: checks this machine by trying each part."""

import os
import platform
import sys

import click

from septet.cli.output import print_text, put_exactly
from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import SeptetError
from septet.sandboxes.ladder import choose_sandbox, self_check
from septet.settings.home import Home, find_home
from septet.stores.sqlite import open_store


class Diagnosis(Value, omit_defaults=False):
    """The outcome of one check; `exit_code` is that of `doctor` if it failed."""

    what: str
    well: bool
    detail: str
    exit_code: int = 1


async def all_diagnoses() -> list[Diagnosis]:
    home = find_home()
    return [check_python(), await check_sandbox(), await check_log(home), diagnose_home(home)]


def check_python() -> Diagnosis:
    detail = f"{platform.python_version()} at {sys.executable}"
    return Diagnosis(what="python", well=sys.version_info >= (3, 11), detail=detail)


async def check_sandbox() -> Diagnosis:
    """Run a hostile program that tries to read a secret, reach a port and more; report what was not blocked."""
    try:
        check = await self_check(await choose_sandbox())
    except SeptetError as error:
        return Diagnosis(what="sandbox", well=False, detail=str(error), exit_code=6)
    blocked = ", ".join(finding.attempt for finding in check.results if finding.is_contained)
    not_blocked = f"not blocked: {', '.join(check.let_through)}"
    detail = f"{check.rung}; blocked: {blocked}" if check.holds else f"{check.rung} {not_blocked}"
    if check.holds and check.let_through:
        detail += f"; {not_blocked} (this rung is weaker, docs/sandbox.md)"
    return Diagnosis(what="sandbox", well=check.holds, detail=detail, exit_code=6)


async def check_log(home: Home) -> Diagnosis:
    try:
        async with open_store(home.database) as store:
            count = len(await store.chats())
    except SeptetError as error:
        return Diagnosis(what="log", well=False, detail=str(error), exit_code=error.exit_code)
    return Diagnosis(what="log", well=True, detail=f"{pluralize(count, 'chat')} in {home.database}")


def diagnose_home(home: Home) -> Diagnosis:
    nearest = next(folder for folder in (home.data, *home.data.parents) if folder.exists())
    well = os.access(nearest, os.W_OK)
    detail = f"{home.data}" if well else f"{nearest} is not writable: set SEPTET_HOME to another folder"
    return Diagnosis(what="home", well=well, detail=detail, exit_code=5)


@click.command(epilog="Example: septet doctor --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def doctor(as_json: bool) -> int:
    """Check this machine: Python, the sandbox, the log, the folders. Exit code 6 if code cannot run here."""
    import anyio

    from septet.cli.doctor import all_diagnoses
    from septet.domain.codec import ENCODER

    findings = anyio.run(all_diagnoses)
    if as_json:
        put_exactly(ENCODER.encode(findings).decode())
    else:
        for finding in findings:
            print_text(f"{'✓' if finding.well else '✗'} {finding.what:<8} {finding.detail}")
    return next((finding.exit_code for finding in findings if not finding.well), 0)
