"""A floor policy as a graph of who may follow whom, and when. If several may speak, the manager chooses."""

from collections.abc import Callable, Mapping

from septet.domain.runs import DIAGNOSTIC_PURPOSES
from septet.domain.state import State
from septet.domain.teams import Edge, RoleSpec, TeamSpec
from septet.team.floor import End, Floor, Move, Speak

Guard = Callable[[State], bool]
Edges = Mapping[str, tuple[Edge, ...]]
START = ""


def has_unrun_code(state: State) -> bool:
    """Whether the newest version has not been run yet."""
    return state.work.version is not None and not state.work.runs


def newest_run_failed(state: State) -> bool:
    """Whether the newest version's last run failed, or a check of the task did."""
    runs = [run for run in state.work.runs if run.purpose not in DIAGNOSTIC_PURPOSES]
    unmet = any(not found.passed for found in state.work.evidence.values())
    return bool(runs) and (not runs[-1].result.succeeded or unmet)


GUARDS: Mapping[str, Guard] = {
    "always": lambda _: True,
    "unrun": has_unrun_code,
    "nothing to run": lambda state: not has_unrun_code(state),
    "failed": newest_run_failed,
    "succeeded": lambda state: bool(state.work.runs) and not newest_run_failed(state),
}


def speakers_of(team: TeamSpec) -> list[RoleSpec]:
    """All members but the person, who may speak at any time and never gets the floor."""
    return [member for member in team.members if not member.stands_for_person]


def is_graph(team: TeamSpec) -> bool:
    """Whether the team has a manager, or says which member may follow which."""
    return team.member("manager") is not None or any(member.next for member in team.members)


def edges_of(team: TeamSpec) -> Edges:
    """Who may follow whom: as the team says; else the manager, whom anybody may follow; else the next in order."""
    names, manager = [member.name for member in speakers_of(team)], team.member("manager")
    edges: dict[str, tuple[Edge, ...]] = {START: (Edge(to=names[0]),)}
    for place, member in enumerate(speakers_of(team)):
        if member.next:
            edges[member.name] = member.next
        elif member == manager:
            edges[member.name] = tuple(Edge(to=name) for name in names if name != member.name)
        else:
            after = manager.name if manager else names[(place + 1) % len(names)]
            edges[member.name] = (Edge(to=after),)
    return edges


def candidates(edges: Edges, state: State, after: str | None = None) -> list[str]:
    """The members that may speak now, or after the member `after`, in the order of the graph."""
    last = after if after is not None else state.floor.turn.speaker if state.floor.turn else START
    return list(dict.fromkeys(edge.to for edge in edges.get(last, ()) if GUARDS[edge.when](state)))


def speaker_choices(edges: Edges, chooser: str, state: State) -> list[str]:
    """The members that the chooser may select: those that may follow the previous speaker, or its own edges."""
    others = [name for name in candidates(edges, state, state.floor.previous_speaker) if name != chooser]
    contested = len(candidates(edges, state, state.floor.previous_speaker)) > 1 and bool(others)
    return others if contested else candidates(edges, state, chooser)


def graph(edges: Edges, chooser: str) -> Floor:
    """Give the floor to the only candidate; of several, the chooser selects one, or the first speaks if nobody chooses.

    A member whose reply was refused speaks again first.
    """

    def floor(state: State) -> Move:
        last = state.floor.turn.speaker if state.floor.turn else START
        if state.floor.termination is not None:
            return End(reason="claimed", detail=state.floor.termination.summary)
        if state.talk.refused_reply is not None and state.floor.turn is not None:
            return Speak(speaker=last)
        legal = speaker_choices(edges, chooser, state) if last == chooser else candidates(edges, state)
        if not legal:
            return End(reason="no_progress", detail="nobody may speak next")
        if len(legal) == 1 or state.floor.chosen_speaker in legal:
            return Speak(speaker=legal[0] if len(legal) == 1 else state.floor.chosen_speaker)
        return Speak(speaker=chooser if chooser and last != chooser else legal[0])

    return floor
