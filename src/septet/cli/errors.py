"""Turns errors into what a person sees: one line with cause and remedy, and the exit code."""

import os
import tempfile
import traceback
from pathlib import Path

from msgspec.structs import replace

from septet.chat.results import result_of
from septet.domain.codec import ENCODER
from septet.domain.state import State
from septet.errors import BadConfig, SeptetError, as_septet_error, innermost

EXTRAS = {
    "nats": "cluster",
    "duckdb": "data",
    "xllamacpp": "local",
    "mcp": "mcp",
    "jsonschema": "mcp",
    "pydantic_ai": "providers",
    "keyring": "keyring",
    "azure": "azure",
}
"""The extra of the package that provides a module."""


def explanation(error: BaseException) -> tuple[str, int]:
    """Return the message and the exit code for an error; exception groups are unwrapped."""
    error = innermost(error)
    if isinstance(error, SeptetError):
        return str(error), error.exit_code
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        if extra := EXTRAS.get(package):
            line = f"the package {package} is not installed: pip install 'septet[{extra}]'"
            return line, BadConfig.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    return f"{as_septet_error(error)}: details in {write_traceback(error)}", 1


def failed_result(message: str, code: int, state: State | None) -> str:
    """Return the last line of `--json` after an error: the chat's result so far, with the error."""
    result = replace(result_of(state or State()), detail=message, exit_code=code)
    return ENCODER.encode(result).decode()


def write_traceback(error: BaseException) -> str:
    """Write the traceback to a file for a bug report, and return its name."""
    handle, name = tempfile.mkstemp(prefix="septet-error-", suffix=".txt")
    os.close(handle)
    Path(name).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return name
