"""Tools that are not ours: a name, a JSON schema and somebody who does it. They are in the same registry."""

from collections.abc import Awaitable, Callable, Mapping

from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.tools.registry import Outcome, Tool, ToolContext, misfit, read_arguments

Call = Callable[[Mapping[str, object]], Awaitable[Outcome]]
Check = Callable[[Mapping[str, object]], str]
"""What is wrong with the arguments; nothing where they fit."""


def mcp_tool(offered: ToolOffer, check: Check, call: Call) -> Tool:
    """Never used twice for one call: what it does is not known here."""

    async def use(context: ToolContext, arguments: str) -> Outcome:
        wanted = read_arguments(arguments)
        if isinstance(wanted, Refusal):
            return wanted
        trouble = check(wanted)
        return misfit(offered.name, trouble) if trouble else await call(wanted)

    return Tool(offered.name, offered.description, offered.parameters, use, repeatable=False)
