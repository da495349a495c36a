"""Which program runs a file, by how its name ends; a team may know more."""

from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {
    ".py": "python",
    ".js": "node",
    ".mjs": "node",
    ".cjs": "node",
    ".sh": "bash",
    ".bash": "bash",
    ".pl": "perl",
    ".rb": "ruby",
    ".php": "php",
    ".lua": "lua",
    ".r": "Rscript",
    ".csproj": "dotnet run --project",
    ".cs": "dotnet run",
    ".fsx": "dotnet fsi",
}


def runner_of(path: str, languages: Mapping[str, str] | None = None) -> str:
    """The beginning of the command line that runs the file; empty where nothing is known of its kind."""
    name = path.rsplit("/", 1)[-1]
    ending = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    return {**LANGUAGES, **(languages or {})}.get(ending, "")
