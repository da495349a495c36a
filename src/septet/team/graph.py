"""A floor as a graph: who may follow whom, and when. One candidate needs no model; of more the manager chooses."""

from collections.abc import Callable, Mapping

from septet.domain.state import State
from septet.domain.values import Value
from septet.team.moves import End, Floor, Move, Speak

Guard = Callable[[State], bool]
START = ""


class Edge(Value):
    to: str
    when: str = "always"


def unrun(state: State) -> bool:
    """The coder has sent code that nobody has run."""
    return state.version is not None and not state.runs


def failed(state: State) -> bool:
    return bool(state.runs) and not state.runs[-1].result.succeeded


GUARDS: Mapping[str, Guard] = {
    "always": lambda _: True,
    "unrun": unrun,
    "nothing to run": lambda state: not unrun(state),
    "failed": failed,
    "succeeded": lambda state: bool(state.runs) and not failed(state),
}

PAIR: Mapping[str, tuple[Edge, ...]] = {
    START: (Edge(to="manager"),),
    "manager": (Edge(to="coder"),),
    "coder": (Edge(to="runner", when="unrun"), Edge(to="coder", when="nothing to run")),
    "runner": (Edge(to="coder"), Edge(to="manager", when="succeeded")),
    "exemplar": (Edge(to="coder"),),
    "proxy": (Edge(to="runner", when="unrun"), Edge(to="manager", when="nothing to run")),
}


def candidates(edges: Mapping[str, tuple[Edge, ...]], state: State) -> list[str]:
    """Who may speak now, in the order of the graph."""
    last = state.turn.speaker if state.turn else START
    return [edge.to for edge in edges.get(last, ()) if GUARDS[edge.when](state)]


def graph(edges: Mapping[str, tuple[Edge, ...]], chooser: str) -> Floor:
    """The only candidate, or the chosen one; the chooser is asked where there are several.

    Who could not be understood speaks again before anybody else.
    """

    def floor(state: State) -> Move:
        legal = candidates(edges, state)
        if state.terminated is not None:
            return End(reason="claimed", detail=state.terminated.summary)
        if state.refused is not None and state.turn is not None:
            return Speak(speaker=state.turn.speaker)
        if not legal:
            return End(reason="no_progress", detail="nobody may speak next")
        if len(legal) == 1 or state.chosen in legal:
            return Speak(speaker=legal[0] if len(legal) == 1 else state.chosen)
        return Speak(speaker=chooser)

    return floor
