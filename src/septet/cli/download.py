"""An embedded model on its way here, as a person sees it; and the model to think with when none was named."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from septet.cli.options import ModelOptions
from septet.cli.output import notify, put_exactly
from septet.cli.person import ask_line, at_terminal
from septet.common.text import format_size, printable
from septet.common.values import Value
from septet.errors import NoModel
from septet.wiring.models import Choice, Models

MENU = """\
nothing to think with was found. What would you like?
  1  watch a demo: scripted answers, code that is really run here (septet demo)
  2  use an API key
  3  look again for a local server (Ollama, LM Studio, llama.cpp, vLLM)
  4  fetch the embedded small coder model: 1.1 GB once, real, offline, good for small jobs"""

PROVIDERS = ("openai", "anthropic")
QUICKSTART = "SEPTET_QUICKSTART"
"""Set by a checkout's `./run`."""

Progress = Callable[[int, int], None]
Tell = Callable[[str], None]


async def fetch_embedded(models: Models, name: str) -> Path:
    """The file of an embedded model; its licence is shown before it is fetched."""
    if models.embedded.is_downloaded(name):
        return await models.embedded.fetch(name, lambda _, __: None, notice)
    notice(f"fetching {models.embedded.describe(name)}")
    with progress_bar() as (progress, tell):
        return await models.embedded.fetch(name, progress, tell)


async def fetch_as_json(models: Models, name: str) -> Path:
    """The same for programs: a line of JSON for each hundredth, for each note, and for what came of it."""
    was_here, entry = models.embedded.is_downloaded(name), models.embedded.find(name)
    progress = part_progress(100, lambda here, whole: put_event(DownloadProgress(here=here, whole=whole)))
    path = await models.embedded.fetch(name, progress, lambda text: put_event(DownloadNote(text=text)))
    put_event(
        DownloadResult(name=name, path=str(path), size=entry.size, sha256=entry.sha256, fetched=not was_here)
    )
    return path


class DownloadProgress(Value, tag="progress"):
    """Bytes that are here, and bytes in all."""

    here: int
    whole: int


class DownloadNote(Value, tag="note"):
    text: str


class DownloadResult(Value, tag="result", omit_defaults=False):
    """`fetched` is whether it had to be."""

    name: str
    path: str
    size: int
    sha256: str
    fetched: bool


def put_event(line: DownloadProgress | DownloadNote | DownloadResult) -> None:
    put_exactly(msgspec.json.encode(line).decode())


def notice(text: str) -> None:
    notify(f"septet: {text}")


@contextmanager
def progress_bar() -> Generator[tuple[Progress, Tell], None, None]:
    """A bar on a terminal, a line each tenth elsewhere."""
    if not sys.stderr.isatty():
        yield (
            part_progress(
                10,
                lambda here, whole: notice(
                    f"{100 * here // whole:3} %, {format_size(here)} of {format_size(whole)}"
                ),
            ),
            notice,
        )
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
        yield (
            lambda here, whole: bar.update(task, completed=here, total=whole),
            lambda text: bar.console.print(printable(f"septet: {text}"), highlight=False, markup=False),
        )


def part_progress(count: int, hear: Progress) -> Progress:
    """Heard once for each of so many parts, and again from the start where another source begins."""
    told = [-1, 0]

    def progress(here: int, whole: int) -> None:
        part = count * here // whole
        if part > told[0] or here < told[1]:
            hear(here, whole)
            told[0] = part
        told[1] = here

    return progress


async def model_to_use(models: Models, options: ModelOptions, yes: bool) -> str | None:
    """The model that was named, or the one that is chosen, with the reason on stderr.

    An embedded one is fetched where somebody has asked for it, by name or by `--fetch`. With `yes`
    nobody is asked. None means that the person would rather watch a demo.
    """
    given, silent = options.model, yes or not at_terminal()
    if not given:
        choice = await choose_model(models, may_fetch(options, yes), silent)
        if choice is None:
            return None
        notify(f"septet: thinking with {choice.name}: {choice.reason}")
        given = choice.name
    if given.partition("/")[0] == "local" and (silent or options.fetch):
        await fetch_embedded(models, given.partition("/")[2])
    return given


def may_fetch(options: ModelOptions, yes: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """A gigabyte is fetched for who asked for it. `./run --yes` of a checkout does: the quickstart says so."""
    return options.fetch or (yes and bool(environment.get(QUICKSTART)))


async def choose_model(models: Models, offer_embedded: bool, silent: bool) -> Choice | None:
    """Asked at a terminal until there is something to think with; one line and an error elsewhere."""
    while True:
        try:
            return await models.choose(offer_embedded=offer_embedded)
        except NoModel:
            if silent:
                raise
        notify(MENU)
        wish = (await ask_line("> ")).strip()
        if wish == "1":
            return None
        await follow_choice(models, wish)


async def follow_choice(models: Models, wish: str) -> None:
    if wish == "2":
        provider = await ask_word("which one, openai or anthropic: ", PROVIDERS)
        key = click.prompt("key", hide_input=True, err=True)
        models.store_key(provider, str(key).strip())
    elif wish == "4":
        models.check_runtime()
        await fetch_embedded(models, "")
    elif wish != "3":
        raise NoModel("no model was chosen", "septet demo shows a team at work, with no key")


async def ask_word(prompt: str, words: tuple[str, ...]) -> str:
    """One of the words; asked again for anything else."""
    while (word := (await ask_line(prompt)).strip().lower()) not in words:
        notify(f"septet: please type {' or '.join(words)}")
    return word
