"""Turns errors into what a person sees: one line with cause and remedy, and the exit code."""

import os
import tempfile
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import click
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


def usage_message(error: click.ClickException, typed: Sequence[str], commands: Sequence[str]) -> str:
    """Return what is wrong with the command line and what to write instead, in one line."""
    context = getattr(error, "ctx", None)
    see = f" (see {context.command_path} --help)" if context else ""
    message = error.format_message()
    match error:
        case click.NoSuchOption(option_name=name):
            return unknown_option(name, typed, commands, context) + see
        case click.BadParameter(param=click.Parameter() as parameter):
            return parameter_message(error, parameter) + see
        case click.BadOptionUsage(option_name=name):
            return f"{name} needs a value{see or ' (see septet run --help)'}"
        case _ if "unexpected extra argument" in message:
            extra = message.partition("(")[2].rstrip(")")
            return f"unexpected argument '{extra}': put text of several words in quotes{see}"
        case _:
            message = message.replace("No such command", "there is no command").replace(
                ". Did you", ": did you"
            )
            return f"{message.rstrip('.')}{see}"


def parameter_message(error: click.BadParameter, parameter: click.Parameter) -> str:
    """Name the option or argument that is missing or wrong, and the values that it takes."""
    name, kind = parameter_name(parameter), parameter.type
    value = error.message.split(" is not ")[0].strip("'")
    if isinstance(error, click.MissingParameter):
        return f"{name} is missing{example_of(error.ctx)}"
    if isinstance(kind, click.Choice):
        *others, last = map(str, kind.choices)
        return f"{name} cannot be '{value}': use {', '.join(others)} or {last}"
    if isinstance(kind, click.IntRange):
        return f"{name} cannot be '{value}': write a whole number{bounds_of(kind)}"
    return f"{name}: {error.message}"


def unknown_option(
    name: str, typed: Sequence[str], commands: Sequence[str], context: click.Context | None
) -> str:
    """Say that there is no such option, and name the option or command that was probably meant."""
    known = ["--help", "--version"] if context is None or context.parent is None else ["--help"]
    if context is not None:
        known += [option for parameter in context.command.get_params(context) for option in parameter.opts]
    written = next((word for word in typed if word.startswith(name) and f"-{word}" in known), name)
    if written.lstrip("-") in commands:
        return f"there is no option '{written}': septet {written.lstrip('-')} is a command"
    near = [f"-{written}"] if f"-{written}" in known else get_close_matches(written, known, n=1)
    return f"there is no option '{written}'" + (f": did you mean '{near[0]}'?" if near else "")


def parameter_name(parameter: click.Parameter) -> str:
    """Return an option as it is typed, and an argument by its name in the help."""
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.metavar or (parameter.name or "").upper()


def example_of(context: click.Context | None) -> str:
    """Return the example of the command's help, as the end of a sentence."""
    epilog = (context.command.epilog or "") if context else ""
    example = epilog.partition(": ")[2].partition(";")[0]
    return f": for example {example}" if example else ""


def bounds_of(kind: click.IntRange) -> str:
    if kind.min is not None and kind.max is not None:
        return f" from {kind.min} to {kind.max}"
    return f", {kind.min} or more" if kind.min is not None else ""


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
