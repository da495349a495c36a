"""A home for AutoGen's agents and teams: an `autogen_core` runtime on the cluster, and adapters between its members
and ours. Extra `autogen`. What needs `autogen_agentchat` is loaded when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from septet.protocols.autogen.envelopes import RemoteError
from septet.protocols.autogen.host import RuntimeHost
from septet.protocols.autogen.runtime import Runtime

if TYPE_CHECKING:
    from septet.protocols.autogen.members import as_model, as_tool
    from septet.protocols.autogen.team_agent import TeamAgent

__all__ = ["RemoteError", "Runtime", "RuntimeHost", "TeamAgent", "as_model", "as_tool"]

HOMES = {"as_model": "members", "as_tool": "members", "TeamAgent": "team_agent"}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'septet.autogen' has no attribute '{name}'")
    return getattr(import_module(f"septet.protocols.autogen.{HOMES[name]}"), name)
