"""Contexts of small projects."""

from collections.abc import Mapping
from pathlib import Path

from septet.domain.plans import Refusal
from septet.domain.runs import RunResult
from septet.errors import SandboxFailed
from septet.team.context import Context
from septet.tools.registry import Tool, ToolResult
from septet.workspace.files import Workspace
from septet.workspace.listing import FolderTexts, ignored_paths, secret_reason


def project(**files: str) -> Context:
    """A context with these files; `main_py` stands for main.py."""
    context = Context(epoch=1, name="p", goal="g", project_dir="p", project_path="/p")
    for name, text in files.items():
        context = context.with_file(name.replace("_py", ".py"), text)
    paths = tuple(file.rel_path for file in context.project_code)
    return Context(
        epoch=1,
        name="p",
        goal="g",
        project_dir="p",
        project_path="/p",
        project_code=context.project_code,
        filetree=paths,
    )


def files(context: Context) -> dict[str, str]:
    return {file.rel_path: file.content for file in context.project_code}


class ProjectContext:
    """A tool context with a project and no sandbox."""

    def __init__(self, project: Context, root: Path = Path("/nonexistent")) -> None:
        self.project = project
        self.root = root
        self.wished: dict[str, str | None] = {}

    @property
    def texts(self) -> Mapping[str, str]:
        return files(self.project)

    def inside(self, path: str) -> str:
        return path.removeprefix(f"{self.root}/")

    def exists(self, path: str) -> bool:
        return path in self.texts

    def secret_reason(self, path: str) -> str:
        content = self.root / path
        return secret_reason(path, content.read_bytes()) if content.is_file() else ""

    def write(self, path: str, text: str | None) -> None:
        self.wished[path] = text

    def has_read(self, path: str) -> bool:
        return False

    async def execute(self, path: str) -> RunResult:
        raise SandboxFailed("the sandbox broke", "resume")

    async def run(self, command: str, seconds: float = 0) -> RunResult:
        raise SandboxFailed("the sandbox broke", "resume")

    async def check(self) -> ToolResult:
        raise SandboxFailed("the sandbox broke", "resume")


async def apply(tool: Tool, before: Context, arguments: str) -> dict[str, str] | Refusal:
    """The project's files after a call."""
    context = ProjectContext(before)
    said = await tool.use(context, arguments)
    after = {**files(before), **context.wished}
    return (
        said
        if isinstance(said, Refusal)
        else {path: text for path, text in after.items() if text is not None}
    )


class FolderContext(ProjectContext):
    """A tool context over a folder."""

    def __init__(self, root: Path) -> None:
        super().__init__(project(), root)
        self.known: set[str] = set()

    @property
    def texts(self) -> Mapping[str, str]:
        return FolderTexts({}, Workspace(self.root), ignored_paths(self.root))

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def has_read(self, path: str) -> bool:
        return path in self.known
