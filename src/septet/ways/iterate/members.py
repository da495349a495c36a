"""The members of a software team: planner, coder and reviewer with a model, the runner with the sandbox."""

from collections.abc import Sequence

from septet.agents.exemplar import exemplar_agent, with_stronger_model
from septet.agents.protection import refusing_unseen, with_folder_kept
from septet.agents.runner import compare_versions, runner_agent, try_version
from septet.domain.events import VersionWritten
from septet.domain.state import State
from septet.domain.teams import RoleSpec
from septet.ports import Agent
from septet.ways.iterate.best_of_n import Outcomes, Trials, best_of_n_agent
from septet.ways.iterate.replies import speaking
from septet.ways.way import Kit


def member(spec: RoleSpec, kit: Kit) -> Agent:
    """Who takes the member's turns; those who work in the folder do no harm to it."""
    match spec.role:
        case "proxy":
            return kit.person
        case "exemplar":
            return exemplar_agent(kit.examples())
        case "runner":
            return with_folder_kept(runner_agent(spec, kit.bench), kit.bench, runs=True)
        case "coder":
            return with_folder_kept(refusing_unseen(spec, coder(spec, kit), kit.bench), kit.bench)
        case "reviewer":
            return with_folder_kept(speaker(spec, kit), kit.bench)
        case _:
            return speaker(spec, kit)


def speaker(spec: RoleSpec, kit: Kit) -> Agent:
    """Thinks with its model, and with a stronger one where the same failure comes again and again."""
    bench = kit.bench
    usual = speaking(spec, kit.open_model(spec.model), bench.bus, bench.blobs)
    if not spec.stronger:
        return usual
    stronger = speaking(spec, kit.open_model((spec.stronger,)), bench.bus, bench.blobs)
    return with_stronger_model(usual, stronger, kit.team.help_after)


def coder(spec: RoleSpec, kit: Kit) -> Agent:
    """One version a turn, or the best of several candidates."""
    if spec.candidates <= 1:
        return speaker(spec, kit)
    return best_of_n_agent(spec, kit.open_model(spec.model), kit.bench.bus, kit.bench.blobs, trials(kit))


def trials(kit: Kit) -> Trials:
    """Candidates are tried out in temporary workspaces; nobody watches."""

    async def rehearse(state: State, version: VersionWritten) -> State:
        with kit.scratch() as bench:
            return await try_version(state, version, bench)

    async def compare(state: State, versions: Sequence[VersionWritten], calls: Sequence[str]) -> Outcomes:
        with kit.scratch() as bench:
            return await compare_versions(state, versions, calls, bench)

    return Trials(rehearse=rehearse, compare=compare)
