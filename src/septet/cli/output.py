"""Prints output of commands; control sequences in it never reach the person's terminal."""

import logging
import sys

import click

from septet.common.text import printable


def notify(text: str) -> None:
    """Print a message for the person on stderr, unbuffered."""
    sys.stderr.write(printable(text) + "\n")
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


def show_diff(diff: str) -> None:
    """Show a diff to the person on stderr, before a question."""
    click.echo(coloured(diff), err=True, nl=False) if sys.stderr.isatty() else notify(diff)


def print_diff(diff: str) -> None:
    """Print a diff, coloured on a terminal, else as it is, for `git apply`."""
    click.echo(coloured(diff), nl=False) if sys.stdout.isatty() else put_bytes(diff.encode())


def confirm(question: str) -> bool:
    """Ask for a yes; anything else is a no."""
    return click.confirm(printable(question), err=True)


class Notices(logging.Handler):
    """Prints warnings that no other handler shows."""

    def emit(self, record: logging.LogRecord) -> None:
        notify(self.format(record))


def show_notices() -> None:
    """Replace Python's last-resort handler, which does not escape control sequences."""
    logging.lastResort = Notices(logging.WARNING)
