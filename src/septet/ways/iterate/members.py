"""The members of a software team: planner, coder and reviewer with a model, the runner with the sandbox."""

from collections.abc import Sequence

from septet.agents.exemplar import exemplar_agent, with_stronger_model
from septet.agents.protection import refuse_overwrite, with_folder_protection
from septet.agents.runner import runner_agent, try_version
from septet.agents.trials import Questions, try_programs
from septet.domain.events import VersionWritten
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent
from septet.team.agreement import Outcomes
from septet.ways.iterate.best_of_n import Trials, best_of_n_agent
from septet.ways.iterate.replies import role_agent
from septet.ways.way import MemberContext


def member(spec: RoleSpec, context: MemberContext) -> Agent:
    """Who takes the member's turns; those who work in the folder do no harm to it."""
    match spec.role:
        case "proxy":
            return context.person
        case "exemplar":
            return exemplar_agent(context.examples())
        case "runner":
            return with_folder_protection(
                runner_agent(spec, context.run_context), context.run_context, runs=True
            )
        case "coder":
            return with_folder_protection(
                refuse_overwrite(spec, coder(spec, context), context.run_context), context.run_context
            )
        case "reviewer":
            return with_folder_protection(speaker(spec, context), context.run_context)
        case _:
            return speaker(spec, context)


def speaker(spec: RoleSpec, context: MemberContext) -> Agent:
    """Thinks with its model, and with a stronger one where the same failure comes again and again."""
    run_context = context.run_context
    usual = role_agent(spec, context.open_model(spec.model), run_context.bus, run_context.blobs)
    if not spec.stronger:
        return usual
    stronger = role_agent(spec, context.open_model((spec.stronger,)), run_context.bus, run_context.blobs)
    return with_stronger_model(usual, stronger, context.team.help_after)


def coder(spec: RoleSpec, context: MemberContext) -> Agent:
    """One version a turn, or the best of several candidates."""
    if spec.candidates <= 1:
        return speaker(spec, context)
    return best_of_n_agent(
        spec,
        context.open_model(spec.model),
        context.run_context.bus,
        context.run_context.blobs,
        trials(context),
    )


def trials(context: MemberContext) -> Trials:
    """Candidates are tried out in temporary workspaces; nobody watches."""

    async def rehearse(state: State, version: VersionWritten) -> State:
        with context.scratch_context() as run_context:
            return await try_version(state, version, run_context)

    async def observe(state: State, programs: Sequence[str], questions: Questions) -> list[Outcomes]:
        with context.scratch_context() as run_context:
            folder = str(run_context.workspace.root)
            return await try_programs(state, programs, questions, run_context.sandbox, folder)

    return Trials(rehearse=rehearse, observe=observe)
