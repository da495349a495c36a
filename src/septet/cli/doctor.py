"""`doctor`: checks this machine by trying each part."""

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import click

from septet.cli.output import print_text, put_exactly
from septet.common.secrets import has_scanner
from septet.common.text import pluralize
from septet.common.values import Value
from septet.errors import SeptetError
from septet.sandboxes.ladder import choose_sandbox, self_check
from septet.settings.home import Home, find_home
from septet.stores.sqlite import open_store
from septet.wiring.models import Models


class Diagnosis(Value, omit_defaults=False):
    """The outcome of one check; `exit_code` is that of `doctor` if it failed. Without an `optional` part much works."""

    what: str
    well: bool
    detail: str
    exit_code: int = 1
    optional: bool = False

    @property
    def failed(self) -> bool:
        return not self.well and not self.optional


def diagnosis_line(finding: Diagnosis) -> str:
    mark = "✓" if finding.well else "–" if finding.optional else "✗"
    return f"{mark} {finding.what:<8} {finding.detail}"


async def all_diagnoses() -> list[Diagnosis]:
    home = find_home()
    return [
        check_python(),
        await check_sandbox(),
        await check_log(home),
        diagnose_home(home),
        await check_models(home),
        *map(check_tool, TOOLS),
        check_scanner(),
    ]


async def check_models(home: Home) -> Diagnosis:
    """Say which model would be used; `septet demo` works without one."""
    async with Models(home) as models:
        try:
            choice = await models.choose()
            models.open([choice.name])
        except SeptetError as error:
            return Diagnosis(what="model", well=False, detail=str(error), exit_code=5, optional=True)
    return Diagnosis(what="model", well=True, detail=f"{choice.name}: {choice.reason}")


class Tool(NamedTuple):
    """A program that Septet uses if it is installed."""

    program: str
    purpose: str
    package: str


TOOLS = (
    Tool("git", "work on your own repositories", "apt install git"),
    Tool("Xvfb", "run programs that open a window, and take pictures of them", "apt install xvfb"),
    Tool("uv", "install packages that programs need", "pip install 'septet[packages]'"),
)


def check_tool(tool: Tool) -> Diagnosis:
    path = find_tool(tool.program)
    detail = path or f"not installed: {tool.package}, to {tool.purpose}"
    return Diagnosis(what=tool.program, well=bool(path), detail=detail, optional=True)


def find_tool(program: str) -> str:
    """Return the path of the program, on PATH or beside this Python; empty if there is none."""
    return shutil.which(program) or shutil.which(program, path=str(Path(sys.executable).parent)) or ""


def check_scanner() -> Diagnosis:
    """What texts are searched for secrets with before a model gets them."""
    well = has_scanner()
    detail = (
        "Kingfisher's rules, beside a few patterns"
        if well
        else "a few patterns only: pip install 'septet[secrets]', to scan with Kingfisher's rules"
    )
    return Diagnosis(what="secrets", well=well, detail=detail, optional=True)


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
    """Check this machine: Python, the sandbox, the log, the folders, the models, git, Xvfb, uv,
    the secret scanner.

    A part marked – is optional. Exit code 6 if code cannot run here.
    """
    import anyio

    from septet.cli.doctor import all_diagnoses
    from septet.domain.codec import ENCODER

    findings = anyio.run(all_diagnoses)
    if as_json:
        put_exactly(ENCODER.encode(findings).decode())
    else:
        for finding in findings:
            print_text(diagnosis_line(finding))
    return next((finding.exit_code for finding in findings if finding.failed), 0)
