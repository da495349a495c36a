"""All that a command shows: nothing in it may command the person's terminal, whoever has written it."""

import logging
import sys

import click

from septet.common.text import printable


def notify(text: str) -> None:
    """To the person, beside the result: on stderr, at once."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def print_text(text: str) -> None:
    """The result, for people: on stdout, at once. Whoever reads the other end of a pipe may show it too."""
    sys.stdout.write(printable(text).removesuffix("\n") + "\n")
    sys.stdout.flush()


def put_exactly(text: str) -> None:
    """The result, for programs: as it is, unless a terminal would obey it."""
    if sys.stdout.isatty():
        print_text(text)
        return
    sys.stdout.write(text.removesuffix("\n") + "\n")
    sys.stdout.flush()


def put_bytes(content: bytes) -> None:
    """The same for a whole file: not a byte is added."""
    if sys.stdout.isatty():
        sys.stdout.write(printable(content.decode(errors="replace")))
    else:
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def coloured(diff: str) -> str:
    """For a terminal; the text itself is made harmless first."""
    lines = printable(diff).splitlines(keepends=True)
    return "".join(click.style(line, fg=COLOURS[line[0]]) if line[:1] in COLOURS else line for line in lines)


def show_diff(diff: str) -> None:
    """To the person, before a question."""
    click.echo(coloured(diff), err=True, nl=False) if sys.stderr.isatty() else notify(diff)


def print_diff(diff: str) -> None:
    """On a terminal in colours; else as it is, for `git apply`."""
    click.echo(coloured(diff), nl=False) if sys.stdout.isatty() else put_bytes(diff.encode())


def confirm(question: str) -> bool:
    """Ask for a yes; anything else is a no."""
    return click.confirm(printable(question), err=True)


class Notices(logging.Handler):
    """Warnings where nobody else shows them."""

    def emit(self, record: logging.LogRecord) -> None:
        notify(self.format(record))


def show_notices() -> None:
    """Instead of Python's last resort, which would show foreign words as they are."""
    logging.lastResort = Notices(logging.WARNING)
