"""Septet: a team of seven agents that builds what you ask for until checks prove that it works.

The public API. Loaded when it is used: importing septet costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from septet.chat.results import Result
    from septet.domain.events import Recorded
    from septet.errors import SeptetError
    from septet.wiring.api import Project, Team, autocoder

__all__ = ["Project", "Recorded", "Result", "SeptetError", "Team", "autocoder"]

HOMES = {
    "Project": "septet.wiring.api",
    "Recorded": "septet.domain.events",
    "Result": "septet.chat.results",
    "SeptetError": "septet.errors",
    "Team": "septet.wiring.api",
    "autocoder": "septet.wiring.api",
}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'septet' has no attribute '{name}'")
    return getattr(import_module(HOMES[name]), name)
