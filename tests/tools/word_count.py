"""A tool from outside of the package: how many words a file has."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from septet import ToolContext, tool


@tool
@dataclass
class CountWords:
    """How many words a file of the workspace has."""

    path: Annotated[str, Meta(description="A path inside the workspace.")]

    def use(self, context: ToolContext) -> str:
        return f"{self.path} has {len(context.texts[self.path].split())} words"
