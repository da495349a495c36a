"""Finds out whether the checks of a plan can run in the project, while the plan can still be changed."""

import re
import shlex
from collections.abc import Iterable, Sequence

from septet.agents.run_context import RunContext
from septet.agents.runner import open_setup
from septet.common.text import join_words
from septet.domain.events import Event, PlanProposed, ReplyRefused
from septet.domain.plans import CommandSucceeds, Mends, Plan, TestsPass
from septet.domain.pytest_report import PYTEST
from septet.domain.runs import Job
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.errors import NoSandbox
from septet.ports import Agent, Record
from septet.team.baseline import ENVIRONMENT_REMEDY, failure_line, tests_command
from septet.workspace.files import Workspace

MODULE = re.compile(r"\bpython3?\s+-m\s+(\w+)|\bimport\s+(\w+)|\bfrom\s+(\w+)[\w.]*\s+import\b")
ASSIGNMENT = re.compile(r"\w+=")
PROBE = """\
for one in {commands}; do command -v "$one" >/dev/null || echo "command $one"; done
python -c 'import sys; from importlib.util import find_spec
for one in sys.argv[1:]:
    if find_spec(one) is None: print("module", one)' {modules}
"""
START_ONLY = ("--markers",)
"""In place of tests: pytest loads the project's conftest.py, and collects and runs nothing."""


def with_runnable_checks(spec: RoleSpec, usual: Agent, run_context: RunContext) -> Agent:
    """Refuse a plan with a check that cannot run here, and tell the planner what is missing."""

    async def turn(state: State, record: Record) -> Event | None:
        event = await usual(state, record)
        if not isinstance(event, PlanProposed) or event.by != "planner":
            return event
        faults = await missing_things(state, event.plan, run_context)
        reason = f"{join_words(faults)}: name checks that can run in this project as it is"
        return ReplyRefused(role=spec.name, reason=reason) if faults else event

    return turn


async def missing_things(state: State, plan: Plan, run_context: RunContext) -> list[str]:
    """The commands, third-party modules and tests of the base that the plan's checks need and that are missing."""
    scratch = run_context.scratch
    if scratch is None or state.base is None or state.base.survey.kind == "empty":
        return []
    commands = [item.check.command for item in plan.items if isinstance(item.check, CommandSucceeds)]
    targets = [item.check.target for item in plan.items if isinstance(item.check, Mends)]
    try:
        programs = await missing_programs(state, commands, run_context)
        programs += await tests_that_cannot_start(state, plan, run_context)
    except NoSandbox:  # programs run on another member's machine, where the checks will show it
        programs = []
    return [
        *programs,
        *[f"the base has no {path}" for path in await missing_files(scratch.base, targets)],
    ]


async def missing_files(base: Workspace, targets: Iterable[str]) -> list[str]:
    paths = dict.fromkeys(target.partition("::")[0] for target in targets)
    return [path for path in paths if path.endswith(".py") and await base.content(path) is None]


async def missing_programs(state: State, commands: Sequence[str], run_context: RunContext) -> list[str]:
    """The commands and modules that the sandbox lacks; a module of no known distribution may be written later."""
    words = first_words(commands)
    modules = await modules_of_others(state, commands, run_context)
    if not (words or modules) or await open_setup(state, run_context):  # which may bring them
        return []
    script = PROBE.format(commands=shlex.join(words), modules=shlex.join(modules))
    job = Job(
        command=("sh", "-c", script),
        workspace=str(run_context.workspace.root),
        limits=state.team.limits,
        home=state.workspace,
    )
    result = await run_context.sandbox.run(run_context.mounted(job))
    known = {*(f"command {one}" for one in words), *(f"module {one}" for one in modules)}
    return [f"there is no {line}" for line in result.stdout.splitlines() if line in known]


async def tests_that_cannot_start(state: State, plan: Plan, run_context: RunContext) -> list[str]:
    """Why pytest cannot start in the base, if a check of the plan needs it: for want of a package in a conftest.py,
    or because that was written for another pytest.
    """
    named = any(isinstance(item.check, TestsPass | Mends) for item in plan.items)
    scratch, found = run_context.scratch, state.base.survey.tests if state.base else ""
    if (
        not named
        or not found
        or tests_command(state)
        or scratch is None
        or await open_setup(state, run_context)
    ):
        return []
    job = Job(
        command=PYTEST,
        workspace=str(scratch.base.root),
        limits=state.team.limits,
        tests=True,
        only=START_ONLY,
        home=state.workspace,
    )
    result = await run_context.sandbox.run(run_context.mounted(job))
    if result.succeeded or result.stopped_by:
        return []
    return [f"the project's tests do not start here ({failure_line(result)}; {ENVIRONMENT_REMEDY})"]


def first_words(commands: Iterable[str]) -> list[str]:
    """The program that each command calls; paths are left out, since they belong to the project."""
    found: dict[str, None] = {}
    for command in commands:
        words = [word for word in split_command(command) if not ASSIGNMENT.match(word)]
        if words and re.fullmatch(r"[\w.+-]+", words[0]):
            found[words[0]] = None
    return list(found)


def split_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


async def modules_of_others(state: State, commands: Iterable[str], run_context: RunContext) -> list[str]:
    """Modules in the commands that belong to a known distribution that is not installed."""
    named = {name for command in commands for found in MODULE.findall(command) for name in found if name}
    if run_context.packages is None:
        return []
    missing = {
        name: await run_context.packages.find_missing(state.workspace, {"check.py": f"import {name}\n"})
        for name in sorted(named)
    }
    return [name for name, found in missing.items() if found.distributions]
