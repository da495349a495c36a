"""An embedded model on its way here, as a person sees it; and the model to think with when none was named."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import click

from septet.cli.live import write_line
from septet.cli.person import ask_line, at_terminal
from septet.errors import NoModel
from septet.wiring.models import Choice, Models

MENU = """\
nothing to think with was found. What would you like?
  1  watch a rehearsed team build something, really run here (septet demo)
  2  use an API key
  3  look again for a local server (Ollama, LM Studio, llama.cpp, vLLM)
  4  fetch the embedded small coder model: 1.1 GB once, real, offline, good for small jobs"""

PROVIDERS = ("openai", "anthropic")

Progress = Callable[[int, int], None]


async def fetch_embedded(models: Models, name: str) -> Path:
    """The file of an embedded model; its licence is shown before it is fetched."""
    about = models.about(name)
    if models.is_here(name):
        return await models.fetch(name, lambda _, __: None)
    write_line(sys.stderr, f"septet: fetching {about}")
    with progress_shown() as progress:
        return await models.fetch(name, progress)


@contextmanager
def progress_shown() -> Generator[Progress, None, None]:
    """A bar on a terminal, a line each tenth elsewhere."""
    if not sys.stderr.isatty():
        yield tenths()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import (
        Progress as Bar,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("model", total=None)
        yield lambda here, whole: bar.update(task, completed=here, total=whole)


def tenths() -> Progress:
    told = [-1]

    def progress(here: int, whole: int) -> None:
        tenth = 10 * here // whole
        if tenth > told[0]:
            told[0] = tenth
            write_line(sys.stderr, f"septet: {here >> 20} of {whole >> 20} MiB")

    return progress


async def model_to_use(models: Models, given: str, yes: bool) -> str | None:
    """The model that was named, or the one that is chosen, with the reason on stderr.

    An embedded one is fetched when the person has said yes beforehand or nobody is there to ask. None means
    that the person would rather watch a rehearsal.
    """
    if not given:
        choice = await chosen(models, yes)
        if choice is None:
            return None
        write_line(sys.stderr, f"septet: thinking with {choice.name}: {choice.reason}")
        given = choice.name
    if given.partition("/")[0] == "local" and (yes or not at_terminal()):
        await fetch_embedded(models, given.partition("/")[2])
    return given


async def chosen(models: Models, yes: bool) -> Choice | None:
    """Asked at a terminal until there is something to think with; one line and an error elsewhere."""
    while True:
        try:
            return await models.choose(offer_embedded=yes)
        except NoModel:
            if not at_terminal():
                raise
        write_line(sys.stderr, MENU)
        wish = (await ask_line("> ")).strip()
        if wish == "1":
            return None
        await act(models, wish)


async def act(models: Models, wish: str) -> None:
    if wish == "2":
        provider = await asked_for("which one, openai or anthropic: ", PROVIDERS)
        key = click.prompt("key", hide_input=True, err=True)
        models.keys.set(provider, str(key).strip())
    elif wish == "4":
        models.check_embedded()
        await fetch_embedded(models, "")
    elif wish != "3":
        raise NoModel("no model was chosen", "septet demo shows a rehearsed team at work, with no key")


async def asked_for(prompt: str, words: tuple[str, ...]) -> str:
    """One of the words; asked again for anything else."""
    while (word := (await ask_line(prompt)).strip().lower()) not in words:
        write_line(sys.stderr, f"septet: please type {' or '.join(words)}")
    return word
