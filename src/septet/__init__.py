"""Septet: a team of seven agents that builds what you ask for until checks prove that it works.

The public API. Loaded when it is used: importing septet costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from septet.chat.results import Result
    from septet.domain.events import Recorded
    from septet.errors import BadUsage, SeptetError
    from septet.team.context import Context, compose_prompt
    from septet.tools.registry import ToolContext, action, tool
    from septet.tools.registry import ToolContext as Hands
    from septet.wiring.api import Team
    from septet.wiring.autocoder import Project, autocoder
    from septet.wiring.handle import Handle

__all__ = [
    "BadUsage",
    "Context",
    "Handle",
    "Hands",
    "Project",
    "Recorded",
    "Result",
    "SeptetError",
    "Team",
    "ToolContext",
    "action",
    "autocoder",
    "compose_prompt",
    "tool",
]

HOMES = {
    "BadUsage": "septet.errors",
    "Context": "septet.team.context",
    "Handle": "septet.wiring.handle",
    "Project": "septet.wiring.autocoder",
    "Recorded": "septet.domain.events",
    "Result": "septet.chat.results",
    "SeptetError": "septet.errors",
    "Team": "septet.wiring.api",
    "ToolContext": "septet.tools.registry",
    "action": "septet.tools.registry",
    "autocoder": "septet.wiring.autocoder",
    "compose_prompt": "septet.team.context",
    "tool": "septet.tools.registry",
}
ALIASES = {"Hands": "ToolContext"}
"""Names that older programs have for some."""


def __getattr__(name: str) -> object:
    name = ALIASES.get(name, name)
    if name not in HOMES:
        raise AttributeError(f"module 'septet' has no attribute '{name}'")
    return getattr(import_module(HOMES[name]), name)
