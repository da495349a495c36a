"""The runner: installs packages, runs the newest version and its checks in the sandbox, and records the evidence."""

import asyncio
from collections.abc import Mapping, Sequence

from septet.agents.checks import find_evidence, held_before, holds_when_empty
from septet.agents.control_folders import (
    possible_controls,
    program_of,
)
from septet.agents.deletions import is_secret
from septet.agents.records import Rehearsal
from septet.agents.reply_files import sources
from septet.agents.run_context import RunContext, check_for, mount_over_origin, suite_limits
from septet.domain.events import (
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    RunFinished,
    RunStarted,
    VersionWritten,
)
from septet.domain.facts import fact_named
from septet.domain.files import is_test
from septet.domain.packages import Installation, MissingPackages
from septet.domain.plans import (
    CommandSucceeds,
    CustomCheck,
    ExampleHolds,
    Judged,
    Mends,
    Serves,
    ShowsWindow,
    TestsPass,
    input_of,
    is_held,
)
from septet.domain.pytest_report import PYTEST, covers
from septet.domain.runs import (
    HOLLOW,
    ControlName,
    Job,
    Mode,
    PlannedRun,
    Server,
    mode_name,
)
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Packages, Record
from septet.team.baseline import (
    AFFECTED,
    WHOLE_SUITE,
    asked_tests,
    chosen_tests,
    files_that_finish,
    has_baseline,
    has_project,
    is_long,
    needs_base_run,
    open_repeats,
    run_for,
    tests_are_evidence,
    tests_command,
    tests_of,
)
from septet.team.controls import MUTANTS
from septet.team.deletions import can_have_special_cases
from septet.team.evidence import (
    author_of,
    control_of_tests,
    needs_change_shown,
    needs_found_tests,
    needs_mutant,
    open_runs,
    test_problems,
    tested_target,
)
from septet.team.run_modes import mode_of_run, mode_of_tests
from septet.team.witnesses import can_ask_for_examples
from septet.workspace.files import in_thread
from septet.workspace.modules import affected_tests
from septet.workspace.project import requirements, setup_command
from septet.workspace.scratch import ENVIRONMENTS, files_below

SETUP_REMEDY = (
    "make the environment in the folder yourself, or name another command with `setup:` in the team file"
)
SHOWS_CHANGE = (Mends, ShowsWindow, CustomCheck)
"""Kinds of check that are not compared with the base, or have been."""


async def provide(state: State, record: Record, run_context: RunContext, sources: Mapping[str, str]) -> State:
    """Install missing packages, or record that they are wanted if the person must agree first."""
    missing = await open_wish(state, run_context.packages, sources)
    return await install_missing(state, record, run_context, missing)


async def install_missing(
    state: State, record: Record, run_context: RunContext, missing: MissingPackages
) -> State:
    packages = run_context.packages
    if packages is None or not missing:
        return state
    if missing != state.work.provisions.wanted:
        state = await record(PackagesWanted(missing=missing))
    if state.team.packages == "auto" and state.work.provisions.to_ask:
        names = tuple(sorted(missing.names))
        state = await record(PackagesDecided(names=names, allowed=True, by="policy"))
    if not state.work.provisions.to_ask:
        if missing.setup:
            installation = await run_setup(state, run_context, missing.setup)
        else:
            installation = await packages.install(state.workspace, missing)
        state = await record(PackagesInstalled(installation=installation))
    return state


async def open_wish(state: State, packages: Packages | None, sources: Mapping[str, str]) -> MissingPackages:
    if packages is None or state.team.packages == "off":
        return MissingPackages()
    return state.work.provisions.fresh(await packages.find_missing(state.workspace, sources))


def waits(state: State) -> bool:
    """Whether runs must wait until the person decides about packages."""
    return state.team.packages == "ask" and bool(state.work.provisions.to_ask)


def runner_agent(member: RoleSpec, run_context: RunContext) -> Agent:
    """The runner as an agent: makes the runs that the newest version still needs, then evaluates every check."""

    async def turn(state: State, record: Record) -> None:
        state = await set_up(state, record, run_context)
        if waits(state):
            return
        state = await take_baseline(member.name, state, record, run_context)
        await run_and_check(member.name, state, record, run_context)

    return turn


async def run_and_check(
    name: str, state: State, record: Record, run_context: RunContext, *, whole: bool = True
) -> State:
    """Run and check the newest version; unless `whole`, only the affected tests of a long suite run."""
    assert state.work.version is not None, "the floor gives the runner a version to run"
    await run_context.write_newest(state, sweep=True)  # the newest version must create its own files
    texts = await sources(state, run_context.blobs)
    state = await provide(state, record, run_context, texts)
    if waits(state):
        return state
    controls = possible_controls(await program_of(state, run_context.blobs, run_context.scratch))
    while (planned := next_run(state, controls, whole=whole)) is not None:
        state = await one_run(name, state, record, run_context, planned)
    state = await look_for_special_cases(name, state, record, run_context)
    await run_context.keep_named_traces(state)
    for item in state.plan.items:
        if item.id not in state.work.evidence and not isinstance(item.check, Judged):
            state = await record(await find_evidence(state, item, run_context))
    return state


async def set_up(state: State, record: Record, run_context: RunContext) -> State:
    """A project without an environment of its own gets one, once, as the policy says.

    Its setup command makes it; where there is none, or it fails, what the project says that it needs is installed.
    """
    base, scratch, packages = state.base, run_context.scratch, run_context.packages
    if base is None or scratch is None or packages is None or state.team.packages == "off":
        return state
    if command := await open_setup(state, run_context):
        state = await install_missing(state, record, run_context, MissingPackages(setup=command))
    made = scratch.setup_succeeded() and (named_setup(state) or (scratch.setup / ".venv").is_dir())
    own = made or base.baseline is not None or base.survey.interpreter
    if waits(state) or own or tests_command(state):
        return state
    named = await in_thread(lambda: requirements(scratch.base.root))
    missing = state.work.provisions.fresh(MissingPackages(distributions=named))
    return await install_missing(state, record, run_context, missing)


async def open_setup(state: State, run_context: RunContext) -> str:
    """The setup command that has not run yet for the copies that are there; nothing where there is none."""
    base, scratch, provisions = state.base, run_context.scratch, state.work.provisions
    if base is None or scratch is None or scratch.was_set_up() or state.team.packages == "off":
        return ""
    there = [name for name in ENVIRONMENTS if (scratch.origin / name).exists()]
    command = named_setup(state)
    if not command:
        command = await in_thread(lambda: setup_command(scratch.base.root, there))
    elif there:
        return ""
    refused = command in provisions.settled and command not in provisions.allowed
    late = base.baseline is not None and command not in provisions.settled
    return "" if refused or late else command


def named_setup(state: State) -> str:
    """The setup command that the team file or the person names."""
    own_facts = [fact for fact in state.facts if fact in state.own_facts]
    return state.team.setup or fact_named("setup", own_facts)


async def run_setup(state: State, run_context: RunContext, command: str) -> Installation:
    """The command, in a copy of the base at the project's own path; what fails says what helps."""
    scratch, packages = run_context.scratch, run_context.packages
    assert scratch is not None, "only a copy of a project is set up"
    assert packages is not None, "who wants packages has somebody to install them"
    folder = await in_thread(scratch.start_setup)
    job = Job(command=("sh", "-c", command), workspace=str(folder.root), network=state.team.network)
    mounted = mount_over_origin(job, scratch)
    result = await run_context.run_live(packages.setup_job(mounted), state, "runner")
    await in_thread(lambda: scratch.finish_setup(result.succeeded))
    output = result.stdout + result.stderr
    if result.succeeded:
        return Installation(installed=(command,), output=output, seconds=result.seconds)
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "it printed nothing")
    why = f"{result.ending}, {last.strip()[:300]} ({SETUP_REMEDY})"
    return Installation(failed=(command,), why=why, output=output, seconds=result.seconds)


async def take_baseline(name: str, state: State, record: Record, run_context: RunContext) -> State:
    """Run the project's tests on the untouched base, once, to know which tests failed before."""
    started = baseline_run(state)
    if started is None or run_context.scratch is None:
        return state
    state = await record(started)
    finished = await run_context.early_result(state) if run_context.early_result else None
    return await record(finished or await run_context.run(state, name, started))


async def take_early_baseline(state: State, record: Record, run_context: RunContext) -> State:
    """As `take_baseline` in the middle of another member's turn: only where the tests run beside it anyway."""
    started = baseline_run(state)
    if started is None or run_context.early_result is None:
        return state
    finished = await run_context.early_result(state)
    if finished is None:
        return state
    await record(started)
    return await record(finished)


def baseline_run(state: State) -> RunStarted | None:
    """The run of the project's tests on the base; None if it is known how they end, or if there are none."""
    base = state.base
    if base is None or base.baseline is not None or not (base.survey.tests or state.team.tests):
        return None
    command = tests_command(state) or " ".join(PYTEST)
    return RunStarted(id="baseline", purpose="baseline", command=command, tree=base.survey.manifest)


class EarlyBaseline:
    """Runs the project's tests on the untouched base beside the work of others, before the runner needs the result.

    Nothing of it is in the log until the runner records it in its turn. If the process dies, or if something that the
    run depends on has changed since, the runner runs the tests itself.
    """

    def __init__(self, run_context: RunContext) -> None:
        self._run_context = run_context
        self._task: asyncio.Task[RunFinished | None] | None = None
        self._basis: object = None

    def start(self, state: State) -> None:
        """Start the run, once. It is a plain task: a task group would have to end before the turn does."""
        if self._task is None:
            self._basis = baseline_basis(state)
            self._task = asyncio.create_task(self._run(state))

    async def _run(self, state: State) -> RunFinished | None:
        started = baseline_run(state)
        if started is None or not await self._has_environment(state):
            return None
        return await self._run_context.run(state, "runner", started)

    async def _has_environment(self, state: State) -> bool:
        """Whether the environment is there already; another one is made in the runner's turn."""
        known = state.team.packages == "off" or (
            state.base is not None and bool(state.base.survey.interpreter)
        )
        return (
            self._run_context.scratch is not None and known and not await open_setup(state, self._run_context)
        )

    async def result(self, state: State) -> RunFinished | None:
        """The result, as soon as it is there; None if the runner must run the tests itself."""
        if self._task is None or baseline_basis(state) != self._basis:
            return None
        await asyncio.wait([self._task])
        failed = self._task.cancelled() or self._task.exception() is not None
        return None if failed else self._task.result()

    async def cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])


def baseline_basis(state: State) -> object:
    """What the result of the baseline depends on, and may change in a chat."""
    moved = dict(state.base.moved) if state.base else None
    return tests_command(state), suite_limits(state), moved, state.work.provisions, state.work.data


def next_run(state: State, controls: Sequence[ControlName], *, whole: bool = True) -> PlannedRun | None:
    """The next run: first what the plan needs, then controls of what passed."""
    due = [one for one in open_runs(state) if whole or one != WHOLE_SUITE or not is_long(state)]
    if planned := due or open_repeats(state):
        return planned[0]
    if needs_found_tests(state):
        return PlannedRun(purpose="tests as found")
    if not test_problems(state) and needs_base_run(state):
        return PlannedRun(purpose="tests on base")
    if needs_doubt(state) and (HOLLOW in controls or not has_baseline(state)):
        return PlannedRun(purpose="tests alone", about=HOLLOW if HOLLOW in controls else "")
    if planned := open_controls(state) or open_base_checks(state):
        return planned[0]
    mutants = [one for one in controls if one in MUTANTS and run_for(state, "tests alone", one) is None]
    if mutants and not test_problems(state) and needs_mutant(state):
        return PlannedRun(purpose="tests alone", about=mutants[0])
    return None


async def look_for_special_cases(name: str, state: State, record: Record, run_context: RunContext) -> State:
    """Once the tests or examples of a requirement have passed: what of the program is there for them only."""
    if not needs_special_cases(state):
        return state
    program = await program_of(state, run_context.blobs, run_context.scratch)
    before = await run_context.base_texts(program)
    if not needs_witness(state) and not can_have_special_cases(program, before):
        return state
    return await one_run(name, state, record, run_context, PlannedRun(purpose="special cases"))


def needs_special_cases(state: State) -> bool:
    """Whether tests or examples that the coder knows have passed, and nobody has looked for special cases yet."""
    if run_for(state, "special cases") is not None or not state.work.files or test_problems(state):
        return False
    if not has_project(state) and are_functions_held_back(state):
        return False  # a special case fails what is held back: nothing needs to be looked for
    examples = [
        one.id for one in state.plan.items if isinstance(one.check, ExampleHolds) and not one.check.held
    ]
    tested = asked_tests(state) is not None and bool(tests_of(state).passed)
    return tested or any(went_well(state, one) for one in examples)


def needs_witness(state: State) -> bool:
    """Whether the planner may have to be asked about calls by which tests show a change that the coder could read."""
    held = {item.text for item in state.plan.items if is_held(item.check)}
    return can_ask_for_examples(state) and any(
        tested_target(item.check) is not None
        and author_of(state, item.check) in ("repository", "person")
        and item.text not in held
        and not held_before(state, item)
        for item in state.plan.items
    )


def are_functions_held_back(state: State) -> bool:
    """Whether of each function with an example the coder knows there is one that it does not know, too."""
    checks = [one.check for one in state.plan.items if isinstance(one.check, ExampleHolds)]
    known, held = (
        {one.call.partition("(")[0] for one in checks if is_secret(state, one) is secret}
        for secret in (False, True)
    )
    return bool(known) and known <= held


def open_controls(state: State) -> list[PlannedRun]:
    """Control runs of commands that passed: they might pass without a working program; not for an unchanged base."""
    if state.base is not None and not state.work.files:
        return []
    items = [one for one in state.plan.items if isinstance(one.check, CommandSucceeds | ExampleHolds)]
    return [
        PlannedRun(purpose="hollow check", about=item.id)
        for item in items
        if went_well(state, item.id) and run_for(state, "hollow check", item.id) is None
    ]


def open_base_checks(state: State) -> list[PlannedRun]:
    """Checks that passed, without the version's changes: those that pass with empty functions too, and the others
    until one of them fails there.
    """
    empty = [one.id for one in state.plan.items if has_project(state) and holds_when_empty(state, one)]
    if due := [one for one in empty if run_for(state, "check on base", one) is None]:
        return [PlannedRun(purpose="check on base", about=one) for one in due]
    if not needs_change_shown(state) or any(isinstance(one.check, SHOWS_CHANGE) for one in state.plan.items):
        return []
    items = [
        one for one in state.plan.items if isinstance(one.check, CommandSucceeds | ExampleHolds | Serves)
    ]
    passed = [one for one in items if went_well(state, one.id) and one.id not in empty]
    tried = [one for one in passed if run_for(state, "check on base", one.id) is not None]
    if not all(held_before(state, one) for one in tried):
        return []
    return [PlannedRun(purpose="check on base", about=one.id) for one in passed if one not in tried]


def went_well(state: State, item: str) -> bool:
    run = run_for(state, "check", item)
    return run is not None and run.result.succeeded


async def one_run(
    speaker: str, state: State, record: Record, run_context: RunContext, planned: PlannedRun
) -> State:
    assert state.work.version is not None
    mode = mode_for(state, planned, await sources(state, run_context.blobs))
    started = RunStarted(
        id=f"v{state.work.version.number} {planned.purpose} {planned.about}".rstrip(),
        purpose=planned.purpose,
        about=planned.about,
        command=command_for(state, planned),
        tree=state.work.version.tree,
        mode=mode_name(mode),
        only=await tests_for(state, run_context, planned),
    )
    state = await record(started)
    return await record(await run_context.run(state, speaker, started, mode))


async def tests_for(state: State, run_context: RunContext, planned: PlannedRun) -> tuple[str, ...]:
    """The tests that the run is limited to; empty for all."""
    version, scratch = state.work.version, run_context.scratch
    if planned.purpose == "special cases":
        return asked_tests(state) or ()
    if (planned.purpose, planned.about) != ("tests", AFFECTED) or version is None or scratch is None:
        return chosen_tests(state, planned)
    changed = [*(file.path for file in version.files), *version.deleted]
    named = [one.check.target for one in state.plan.items if isinstance(one.check, TestsPass | Mends)]
    found = await in_thread(
        lambda: affected_tests(scratch.work.root, files_below(scratch.base.root), changed)
    )
    there = [one for one in named if ".py" in one and not any(covers(file, one) for file in found)]
    return (*found, *there) or files_that_finish(state)


def command_for(state: State, planned: PlannedRun) -> str:
    check = check_for(state, planned)
    if planned.purpose == "run" or isinstance(check, Serves):
        return state.plan.current.run if state.plan.current else ""
    if isinstance(check, CommandSucceeds | ExampleHolds):
        return "a check that is held back" if check.held else input_of(check)
    return tests_command(state) or " ".join(PYTEST)


def mode_for(state: State, planned: PlannedRun, texts: Mapping[str, str]) -> Mode | None:
    """The mode of the run. A check that is a command runs to its end."""
    check = check_for(state, planned)
    if isinstance(check, Serves):
        return Server(path=check.path, needed=True, holds=check.prints)
    if planned.purpose == "run":
        return mode_of_run(state, texts)
    return mode_of_tests(texts)


def needs_doubt(state: State) -> bool:
    """Whether passing tests must be run again without the program."""
    version = state.work.version
    program = version is not None and any(not is_test(file.path) for file in version.files)
    return (
        (program or has_baseline(state))
        and tests_are_evidence(state)
        and bool(tests_of(state).passed)
        and control_of_tests(state) is None
    )


async def rehearse_version(state: State, version: VersionWritten, run_context: RunContext) -> State:
    """Run and check a version in a temporary context; the events are folded but not recorded."""
    rehearsal = Rehearsal(state)
    await rehearsal.record(version)
    return await rehearsal.play(runner_agent(RoleSpec(name="runner", role="runner"), run_context))
