"""The tools of the code assistant: File and ExecutePyFile. SendMessage belongs to the talk itself."""

from pydantic import BaseModel, ConfigDict, Field

from septet.domain.plans import Refusal
from septet.team.briefing import head_and_tail
from septet.tools.registry import Tool, ToolContext, tool_of_model
from septet.workspace.edits import replace_text

MOST_NAMES = 100


class File(BaseModel):
    """Create, overwrite, edit or read a text file in the workspace. Give `body` for a whole file, or `old` and `new`
    to replace a piece of text that stands in it exactly once: the difference comes back. Give none of them to read it.
    """

    model_config = ConfigDict(extra="forbid")

    reasoning: str = Field(min_length=1, description="Think first: what the file is to do, step by step.")
    file_name: str = Field(description="A path inside the workspace, with its extension, e.g. ctr.py")
    body: str | None = Field(default=None, description="The whole content of the file, nothing left out.")
    old: str | None = Field(default=None, description="Text that stands in the file exactly once.")
    new: str | None = Field(default=None, description="What shall stand there instead.")

    def use(self, context: ToolContext) -> str | Refusal:
        if self.body is not None and self.old is None:
            context.write(self.file_name, self.body)
            return f"{self.file_name} is written"
        if self.body is not None or (self.old is None and self.new is not None):
            return Refusal(reason="give either `body`, or `old` and `new`")
        before = context.texts.get(self.file_name)
        if before is None:
            return no_file_in_folder(self.file_name, context)
        if self.old is None:
            return before
        after = replace_text(before, self.old, self.new or "")
        if isinstance(after, str):
            context.write(self.file_name, after)
        return after if isinstance(after, Refusal) else f"{self.file_name} is changed"


class ExecutePyFile(BaseModel):
    """Run a Python file of the workspace. Its exit status, standard output and standard error come back."""

    model_config = ConfigDict(extra="forbid")

    file_name: str = Field(description="The path of the .py file to be run.")

    async def use(self, context: ToolContext) -> str | Refusal:
        if not self.file_name.endswith(".py") or not context.exists(self.file_name):
            return no_file_in_folder(self.file_name, context)
        result = await context.execute(self.file_name)
        made = [change.path for change in result.changes if change.kind != "deleted"]
        parts = [f"{self.file_name}: {result.ending}" + (f", made {', '.join(made)}" if made else "")]
        parts += [f"stdout:\n{head_and_tail(result.stdout)}"] if result.stdout else []
        parts += [f"stderr:\n{head_and_tail(result.stderr)}"] if result.stderr else []
        text = "\n".join(parts)
        return text if result.succeeded else Refusal(reason=text)


def no_file_in_folder(path: str, context: ToolContext) -> Refusal:
    if context.exists(path):
        return Refusal(reason=f"'{path}' is a file that you may not read")
    names = list(context.texts)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return Refusal(
        reason=f"there is no '{path}'; the files are {', '.join(names[:MOST_NAMES]) or 'none'}{more}"
    )


def assistant_tools() -> list[Tool]:
    return [tool_of_model(File), tool_of_model(ExecutePyFile)]
