"""Prints output of commands; control sequences in it never reach the person's terminal."""

import logging
import os
import sys
from shutil import get_terminal_size
from typing import TextIO

import click

from septet.common.text import printable

BELL = "\a"


def notify(text: str) -> None:
    """Print a message for the person on stderr, unbuffered."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def ring() -> None:
    """Ring the terminal's bell; silent where stderr is no terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(BELL)
        sys.stderr.flush()


def print_text(text: str) -> None:
    """Print a result for people on stdout, unbuffered; escaped also in a pipe, whose reader may show it."""
    sys.stdout.write(printable(text).removesuffix("\n") + "\n")
    sys.stdout.flush()


def put_exactly(text: str) -> None:
    """Print a result for programs as it is; escaped only on a terminal."""
    if sys.stdout.isatty():
        print_text(text)
        return
    sys.stdout.write(text.removesuffix("\n") + "\n")
    sys.stdout.flush()


def put_bytes(content: bytes) -> None:
    """Write a file's content for programs, without adding a byte; escaped only on a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(printable(content.decode(errors="replace")))
    else:
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def coloured(diff: str) -> str:
    """Colour a diff for a terminal; control sequences in it are escaped first."""
    lines = printable(diff).splitlines(keepends=True)
    return "".join(click.style(line, fg=COLOURS[line[0]]) if line[:1] in COLOURS else line for line in lines)


def takes_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_diff(diff: str) -> None:
    """Show a diff to the person on stderr, before a question."""
    click.echo(coloured(diff), err=True, nl=False) if takes_colours(sys.stderr) else notify(diff)


def print_diff(diff: str) -> None:
    """Print a diff: on a terminal coloured, in a pager if it is long; else as it is, for `git apply`."""
    if not sys.stdout.isatty():
        put_bytes(diff.encode())
        return
    shown = coloured(diff) if takes_colours(sys.stdout) else printable(diff)
    if diff.count("\n") < get_terminal_size().lines or os.environ.get("TERM") == "dumb":
        click.echo(shown, nl=False, color=True)
        return
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(shown, color=takes_colours(sys.stdout))


def confirm(question: str) -> bool:
    """Ask for a yes; anything else is a no."""
    return click.confirm(printable(question), err=True)


def ask_secret(question: str) -> str:
    """Ask without echo. One Ctrl-C ends it, also inside an event loop, which else would only note the first."""
    import signal

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return str(click.prompt(question, hide_input=True, err=True)).strip()
    finally:
        signal.signal(signal.SIGINT, before)


class Notices(logging.Handler):
    """Prints warnings that no other handler shows."""

    def emit(self, record: logging.LogRecord) -> None:
        notify(self.format(record))


def show_notices() -> None:
    """Replace Python's last-resort handler, which does not escape control sequences."""
    logging.lastResort = Notices(logging.WARNING)
