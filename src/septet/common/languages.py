"""The program that runs a file, by its suffix; a team can add more."""

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


def run_command_prefix(path: str, languages: Mapping[str, str] | None = None) -> str:
    """The beginning of the command line that runs the file; empty if its suffix is unknown."""
    name = path.rsplit("/", 1)[-1]
    suffix = f".{name.rpartition('.')[2].lower()}" if "." in name else ""
    return {**LANGUAGES, **(languages or {})}.get(suffix, "")
