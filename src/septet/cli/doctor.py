"""What `doctor` looks at. Every line was tried just now, none is assumed."""

import os
import platform
import sys

import click

from septet.cli.output import print_text, put_exactly
from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import SeptetError
from septet.sandboxes.ladder import choose_sandbox
from septet.sandboxes.self_check import self_check
from septet.settings.home import Home, find_home
from septet.stores.sqlite import open_store


class Diagnosis(Value, omit_defaults=False):
    """`exit_code` is what `doctor` ends with when this is not well."""

    what: str
    well: bool
    detail: str
    exit_code: int = 1


async def all_diagnoses() -> list[Diagnosis]:
    home = find_home()
    return [about_python(), await about_sandbox(), await about_log(home), about_folder(home)]


def about_python() -> Diagnosis:
    detail = f"{platform.python_version()} at {sys.executable}"
    return Diagnosis(what="python", well=sys.version_info >= (3, 11), detail=detail)


async def about_sandbox() -> Diagnosis:
    """A hostile program tries to read a secret, reach a port and more; what a rung lets through is said."""
    try:
        check = await self_check(await choose_sandbox())
    except SeptetError as error:
        return Diagnosis(what="sandbox", well=False, detail=str(error), exit_code=6)
    held = ", ".join(finding.attempt for finding in check.results if finding.is_contained)
    through = f"let through: {', '.join(check.let_through)}"
    detail = f"{check.rung}; tried in vain: {held}" if check.holds else f"{check.rung} {through}"
    if check.holds and check.let_through:
        detail += f"; {through} (this rung is weaker, docs/sandbox.md)"
    return Diagnosis(what="sandbox", well=check.holds, detail=detail, exit_code=6)


async def about_log(home: Home) -> Diagnosis:
    try:
        async with open_store(home.database) as store:
            count = len(await store.chats())
    except SeptetError as error:
        return Diagnosis(what="log", well=False, detail=str(error), exit_code=error.exit_code)
    return Diagnosis(what="log", well=True, detail=f"{pluralize(count, 'chat')} in {home.database}")


def about_folder(home: Home) -> Diagnosis:
    nearest = next(folder for folder in (home.data, *home.data.parents) if folder.exists())
    well = os.access(nearest, os.W_OK)
    detail = f"{home.data}" if well else f"{nearest} is not writable: set SEPTET_HOME to another folder"
    return Diagnosis(what="home", well=well, detail=detail, exit_code=5)


@click.command(epilog="Example: septet doctor --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
def doctor(as_json: bool) -> int:
    """Look at this machine: Python, the sandbox, the log, the folders. Exit 6 when code cannot run here."""
    import anyio

    from septet.cli.doctor import all_diagnoses
    from septet.domain.codec import ENCODER

    findings = anyio.run(all_diagnoses)
    if as_json:
        put_exactly(ENCODER.encode(findings).decode())
    else:
        for one in findings:
            print_text(f"{'✓' if one.well else '✗'} {one.what:<8} {one.detail}")
    return next((one.exit_code for one in findings if not one.well), 0)
