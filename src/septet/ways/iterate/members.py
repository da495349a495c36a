"""The members of a software team: planner, coder and reviewer with a model, the runner with the sandbox."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from septet.agents.plan_probe import with_runnable_checks
from septet.agents.protection import refuse_overwrite, with_folder_protection
from septet.agents.run_context import RunContext
from septet.agents.runner import rehearse_version, runner_agent
from septet.agents.trials import Questions, try_programs
from septet.domain.events import Event, ExampleGiven, PlanProposed, VersionWritten
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent, Examples, Record
from septet.team.agreement import Outcomes
from septet.team.baseline import mending_plan, tests_to_mend
from septet.team.challenges import unrecorded_challenge
from septet.team.floor import repeated_tries
from septet.ways.iterate.best_of_n import Trials, best_of_n_agent
from septet.ways.iterate.replies import role_agent
from septet.ways.iterate.tool_members import tool_role_agent
from septet.ways.way import MemberContext
from septet.workspace.files import Workspace


def member(spec: RoleSpec, context: MemberContext) -> Agent:
    """The agent of a member; members that write to the folder get its protection."""
    match spec.role:
        case "proxy":
            return context.person
        case "exemplar":
            return exemplar_agent(context.examples())
        case "runner":
            runner = runner_agent(spec, context.run_context)
            return with_folder_protection(runner, context.run_context, runs=True)
        case "coder":
            return with_folder_protection(with_challenge(coder(spec, context)), context.run_context)
        case "planner":
            usual = with_runnable_checks(spec, speaker(spec, context), context.run_context)
            return with_evident_plan(usual, context.run_context)
        case "reviewer":
            return with_folder_protection(speaker(spec, context), context.run_context)
        case _:
            return speaker(spec, context)


def with_evident_plan(usual: Agent, run_context: RunContext) -> Agent:
    """A goal that only names tests of the base to mend needs no model's plan; the person is shown this one as any."""

    async def turn(state: State, record: Record) -> Event | None:
        wanted = state.floor.turn is not None and not state.floor.turn.closed and state.plan.current is None
        tests = tests_to_mend(state) if wanted and not state.talk.remarks else ()
        if tests and run_context.scratch is not None and await has_tests(run_context.scratch.base, tests):
            return PlanProposed(plan=mending_plan(tests), by="septet")
        return await usual(state, record)

    return turn


async def has_tests(base: Workspace, tests: Sequence[str]) -> bool:
    """Whether each test exists."""
    for test in tests:
        path, *names = test.partition("[")[0].split("::")
        text = (await base.content(path) or b"").decode(errors="replace")
        if not text or not all(re.search(rf"\b(?:def|class)\s+{name}\b", text) for name in names):
            return False
    return True


def speaker(spec: RoleSpec, context: MemberContext) -> Agent:
    """An agent with its model, and with a stronger one after repeated failures."""
    usual = thinker(spec, spec.model, context)
    if not spec.stronger:
        return usual
    return with_stronger_model(usual, thinker(spec, (spec.stronger,), context), context.team.help_after)


def thinker(spec: RoleSpec, models: Sequence[str], context: MemberContext) -> Agent:
    """An agent with tools if its model can call them, else with one answer per turn."""
    model, run_context = context.open_model(models), context.run_context
    usual = role_agent(spec, model, run_context.bus, run_context.blobs)
    return tool_role_agent(spec, model, context) if spec.form == "tools" else usual


def coder(spec: RoleSpec, context: MemberContext) -> Agent:
    """The coder: one version per turn, or the best of several candidates."""
    if spec.form == "tools" and spec.candidates <= 1:
        return speaker(spec, context)
    usual = speaker(spec, context) if spec.candidates <= 1 else best_of_candidates(spec, context)
    return refuse_overwrite(spec, usual, context.run_context)


def best_of_candidates(spec: RoleSpec, context: MemberContext) -> Agent:
    return best_of_n_agent(
        spec,
        context.open_model(spec.model),
        context.run_context.bus,
        context.run_context.blobs,
        trials(context),
    )


def trials(context: MemberContext) -> Trials:
    """A run context with a temporary workspace for candidates, without live output."""

    async def rehearse(state: State, version: VersionWritten) -> State:
        with context.scratch_context() as run_context:
            return await rehearse_version(state, version, run_context)

    async def observe(state: State, programs: Sequence[str], questions: Questions) -> list[Outcomes]:
        with context.scratch_context() as run_context:
            folder = str(run_context.workspace.root)
            return await try_programs(state, programs, questions, run_context.sandbox, folder)

    return Trials(rehearse=rehearse, observe=observe)


def exemplar_agent(examples: Examples) -> Agent:
    """The exemplar: searches an example for the newest failure, and says so if there is none."""

    async def turn(state: State, record: Record) -> Event | None:
        if state.floor.turn is None or state.floor.turn.closed:
            return None
        found = await examples.find(state.work.failure)
        given = ExampleGiven(failure=state.work.failure)
        if found is None:
            return given
        return replace(given, code=found.code, source=found.source, title=found.title)

    return turn


def with_challenge(usual: Agent) -> Agent:
    """The usual agent; after its version, the challenge of a check that its reply holds too is recorded."""

    async def turn(state: State, record: Record) -> Event | None:
        newest = state

        async def recording(event: Event) -> State:
            nonlocal newest
            newest = await record(event)
            return newest

        last = await usual(state, recording)
        written = isinstance(last, VersionWritten)
        killed = last is None and newest.floor.turn is not None and newest.floor.turn.closed
        challenge = unrecorded_challenge(newest) if written or killed else None
        if challenge is None or last is None:
            return challenge or last
        await record(last)
        return challenge

    return turn


def with_stronger_model(usual: Agent, stronger: Agent, after: int) -> Agent:
    """The usual agent until the same code or failure was repeated `after` times, then the stronger one."""

    async def turn(state: State, record: Record) -> Event | None:
        return await (stronger if repeated_tries(state) > after else usual)(state, record)

    return turn
