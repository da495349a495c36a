"""Tools that are not ours: a name, a JSON schema and somebody who does it. They fit the same toolbox."""

from collections.abc import Awaitable, Callable, Mapping

from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.tools.actions import read_arguments
from septet.tools.registry import Hands

Call = Callable[[Mapping[str, object]], Awaitable[str | Refusal]]
Check = Callable[[Mapping[str, object]], str]
"""What is wrong with the arguments; nothing where they fit."""


class McpTool:
    """Never used twice for one call: what it does is not known here."""

    repeatable = False

    def __init__(self, offered: ToolOffer, check: Check, call: Call) -> None:
        self.name = offered.name
        self._offer = offered
        self._check = check
        self._call = call

    def offer(self) -> ToolOffer:
        return self._offer

    async def use(self, arguments: str, hands: Hands) -> str | Refusal:
        wanted = read_arguments(arguments)
        if isinstance(wanted, Refusal):
            return wanted
        if trouble := self._check(wanted):
            return Refusal(reason=f"{self.name} cannot be called like that: {trouble}")
        return await self._call(wanted)
