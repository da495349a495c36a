"""Septet: a team of seven agents that builds what you ask for until checks prove that it works.

The public API. Loaded when it is used: importing septet costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from septet.agents.person import Ask
    from septet.chat.results import Result
    from septet.domain import events
    from septet.domain.events import Event, Recorded
    from septet.domain.teams import Budget
    from septet.errors import BadUsage, SeptetError
    from septet.team.context import Context, compose_prompt
    from septet.team.questions import Question
    from septet.tools.registry import Tool, ToolContext, action, tool
    from septet.tools.registry import ToolContext as Hands
    from septet.wiring.api import Run, Team, from_json, to_json
    from septet.wiring.autocoder import Project, autocoder
    from septet.wiring.handle import Handle

__all__ = [
    "Ask",
    "BadUsage",
    "Budget",
    "Context",
    "Event",
    "Handle",
    "Hands",
    "Project",
    "Question",
    "Recorded",
    "Result",
    "Run",
    "SeptetError",
    "Team",
    "Tool",
    "ToolContext",
    "action",
    "autocoder",
    "compose_prompt",
    "events",
    "from_json",
    "to_json",
    "tool",
]

HOMES = {
    "Ask": "septet.agents.person",
    "BadUsage": "septet.errors",
    "Budget": "septet.domain.teams",
    "Context": "septet.team.context",
    "Event": "septet.domain.events",
    "Handle": "septet.wiring.handle",
    "Project": "septet.wiring.autocoder",
    "Question": "septet.team.questions",
    "Recorded": "septet.domain.events",
    "Result": "septet.chat.results",
    "Run": "septet.wiring.api",
    "SeptetError": "septet.errors",
    "Team": "septet.wiring.api",
    "Tool": "septet.tools.registry",
    "ToolContext": "septet.tools.registry",
    "action": "septet.tools.registry",
    "autocoder": "septet.wiring.autocoder",
    "compose_prompt": "septet.team.context",
    "from_json": "septet.wiring.api",
    "to_json": "septet.wiring.api",
    "tool": "septet.tools.registry",
}
ALIASES = {"Hands": "ToolContext"}
"""Names that older programs have for some."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("septet")
    if name == "events":
        return import_module("septet.domain.events")
    name = ALIASES.get(name, name)
    if name not in HOMES:
        raise AttributeError(f"module 'septet' has no attribute '{name}'")
    from septet.common.imports import import_uncollected

    return getattr(import_uncollected(HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
