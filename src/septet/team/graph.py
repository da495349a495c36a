"""A floor as a graph: who may follow whom, and when. One candidate needs no model; of more the manager chooses."""

from collections.abc import Callable, Mapping

from septet.domain.runs import CONTROLS
from septet.domain.state import State
from septet.domain.teams import Edge, RoleSpec, TeamSpec
from septet.team.floor import End, Floor, Move, Speak

Guard = Callable[[State], bool]
Edges = Mapping[str, tuple[Edge, ...]]
START = ""


def unrun(state: State) -> bool:
    """The coder has sent code that nobody has run."""
    return state.work.version is not None and not state.work.runs


def newest_run_failed(state: State) -> bool:
    """The newest code did not run well, or fails a check that was named for it."""
    runs = [run for run in state.work.runs if run.purpose not in CONTROLS]
    unmet = any(not found.passed for found in state.work.evidence.values())
    return bool(runs) and (not runs[-1].result.succeeded or unmet)


GUARDS: Mapping[str, Guard] = {
    "always": lambda _: True,
    "unrun": unrun,
    "nothing to run": lambda state: not unrun(state),
    "failed": newest_run_failed,
    "succeeded": lambda state: bool(state.work.runs) and not newest_run_failed(state),
}


def speakers_of(team: TeamSpec) -> list[RoleSpec]:
    """Everybody but the person, who may say something at any time and is never asked."""
    return [member for member in team.members if not member.stands_for_person]


def is_graph(team: TeamSpec) -> bool:
    """Whether somebody decides who speaks next: a manager, or what a team says of who may follow whom."""
    return team.member("manager") is not None or any(member.next for member in team.members)


def edges_of(team: TeamSpec) -> Edges:
    """Who may follow whom. Unless the team says it: the manager, after whom anybody may; else the next in order."""
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
    """Who may speak now, or after that member, in the order of the graph."""
    last = after if after is not None else state.floor.turn.speaker if state.floor.turn else START
    return list(dict.fromkeys(edge.to for edge in edges.get(last, ()) if GUARDS[edge.when](state)))


def choices(edges: Edges, chooser: str, state: State) -> list[str]:
    """Whom the chooser may give the floor: the several that may follow who spoke before it, else its own edges."""
    others = [name for name in candidates(edges, state, state.floor.previous_speaker) if name != chooser]
    contested = len(candidates(edges, state, state.floor.previous_speaker)) > 1 and bool(others)
    return others if contested else candidates(edges, state, chooser)


def graph(edges: Edges, chooser: str) -> Floor:
    """The only candidate, or the chosen one; the chooser is asked where there are several, or else the first speaks.

    Who could not be understood speaks again before anybody else.
    """

    def floor(state: State) -> Move:
        last = state.floor.turn.speaker if state.floor.turn else START
        if state.floor.termination is not None:
            return End(reason="claimed", detail=state.floor.termination.summary)
        if state.talk.refused_reply is not None and state.floor.turn is not None:
            return Speak(speaker=last)
        legal = choices(edges, chooser, state) if last == chooser else candidates(edges, state)
        if not legal:
            return End(reason="no_progress", detail="nobody may speak next")
        if len(legal) == 1 or state.floor.chosen_speaker in legal:
            return Speak(speaker=legal[0] if len(legal) == 1 else state.floor.chosen_speaker)
        return Speak(speaker=chooser if chooser and last != chooser else legal[0])

    return floor
