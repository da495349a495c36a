"""A tool from outside of the package: how many words a file has."""

from pydantic import BaseModel, Field

from septet import ToolContext, tool


@tool
class CountWords(BaseModel):
    """How many words a file of the workspace has."""

    path: str = Field(description="A path inside the workspace.")

    def use(self, context: ToolContext) -> str:
        return f"{self.path} has {len(context.texts[self.path].split())} words"
