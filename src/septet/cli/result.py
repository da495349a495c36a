"""Prints the result of a chat on stdout, or writes it to a file."""

import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from septet.chat.results import report_table, result_of, status
from septet.cli.options import OutputOptions
from septet.cli.output import notify, print_text, put_exactly
from septet.common.text import printable
from septet.domain.codec import ENCODER
from septet.domain.state import State
from septet.settings.home import find_home
from septet.team.questions import program_location
from septet.ways.endings import is_over
from septet.ways.table import way_of
from septet.workspace.delivery import write_file_atomically

WIDTH = 120


def print_result(state: State, output: OutputOptions, command: str) -> None:
    """Print only the result on stdout; with `--out` write it to that file instead, with `--json` to both.

    `command` resumes the chat.
    """
    result = result_of(state)
    line = ENCODER.encode(result).decode()
    width = shutil.get_terminal_size((WIDTH, 24)).columns if output.out is None else WIDTH
    text = line if output.json else result_text(state, width)
    if output.out is not None:
        write_file_atomically(output.out, f"{text}\n".encode(errors="backslashreplace"))
    if output.json or output.out is None:
        put_exactly(text) if output.json else print_report(text, state, output.plain)
    if output.json or output.quiet:
        return
    if folder := artefact_folder(state):
        notify(f"septet: plan, versions, reviews or history are kept in {folder}")
    if output.out is not None:
        notify(f"septet: {state.chat}: {status(state)}; the result is in {output.out}")
    if result.exit_code and has_program(state) and not is_over(state):
        notify(f"septet: to go on: {command}")


def result_text(state: State, width: int) -> str:
    """Return what the chat was for: the plan, the answer, the last message of a talk, or the report."""
    way = way_of(state.team)
    own_text = way.result_text(state)
    program = program_location(state) if state.work.versions else ""
    if way.is_talk:
        parts = [own_text or status(state), program]
    elif own_text:
        parts = [own_text]
    else:
        parts = [report_table(state, width), f"{state.chat}: {status(state)}", program]
    return "\n".join(part for part in parts if part)


def print_report(text: str, state: State, plain: bool) -> None:
    """On a terminal the marks and the final line have the colour of their outcome, and the folder is a link."""
    console = Console(file=sys.stdout, no_color=plain or None, highlight=False, emoji=False)
    if plain or not console.is_terminal or console.is_dumb_terminal:
        print_text(text)
        return
    final, folder = f"{state.chat}: {status(state)}", program_location(state)
    for line in printable(text).removesuffix("\n").split("\n"):
        shown = Text(line)
        if line == printable(final):
            shown.stylize("bold green" if result_of(state).exit_code == 0 else "bold red")
        elif line == printable(folder):
            start = (
                line.index(printable(state.workspace)) if printable(state.workspace) in line else len(line)
            )
            shown.stylize(f"link {Path(state.workspace).as_uri()}", start)
        elif line.startswith(("✓", "✗")):
            shown.stylize("green" if line[0] == "✓" else "red", 0, 1)
        console.print(shown, soft_wrap=True)


def artefact_folder(state: State) -> str:
    """Return the folder of the artefact files if the team works in the person's folder; else empty."""
    folder = find_home().artefacts / state.chat
    return str(folder) if state.existing and folder.is_dir() else ""


def has_program(state: State) -> bool:
    way = way_of(state.team)
    return not way.is_talk and not way.result_text(state)
