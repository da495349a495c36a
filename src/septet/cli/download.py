"""Downloads an embedded model with a progress display, and chooses the model if none was named."""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from septet.cli.options import QUICKSTART, ModelOptions
from septet.cli.output import ask_secret, notify, put_exactly
from septet.cli.person import ask_line, at_terminal
from septet.common.text import format_size, printable
from septet.common.values import Value
from septet.errors import BadConfig, NoModel
from septet.wiring.models import ModelChoice, Models

MENU = """\
no model was found. What would you like?
  1  watch a demo (scripted answers; its code is really run)
  2  enter an API key (OpenAI or Anthropic)
  3  look again for a model server on this machine
     (Ollama, LM Studio, llama.cpp, vLLM)
  4  download the built-in model, 1.1 GB, once
     (runs offline, good for small programs)
Type a number; Ctrl-C quits."""

PROVIDERS = ("openai", "anthropic")

Progress = Callable[[int, int], None]
ShowNote = Callable[[str], None]


async def fetch_embedded(models: Models, name: str) -> Path:
    """Return the file of an embedded model; its licence is shown before it is downloaded."""
    if models.embedded.is_downloaded(name):
        return await models.embedded.fetch(name, lambda _, __: None, notice)
    notice(f"fetching {models.embedded.describe(name)}")
    with progress_bar() as (progress, show_note):
        return await models.embedded.fetch(name, progress, show_note)


async def fetch_as_json(models: Models, name: str) -> Path:
    """The same for programs: a line of JSON for each percent, for each note, and for the result."""
    was_downloaded, entry = models.embedded.is_downloaded(name), models.embedded.find(name)
    progress = part_progress(100, lambda here, whole: put_event(DownloadProgress(here=here, whole=whole)))
    path = await models.embedded.fetch(name, progress, lambda text: put_event(DownloadNote(text=text)))
    put_event(
        DownloadResult(
            name=name, path=str(path), size=entry.size, sha256=entry.sha256, fetched=not was_downloaded
        )
    )
    return path


class DownloadProgress(Value, tag="progress"):
    """Bytes downloaded, and bytes in all."""

    here: int
    whole: int


class DownloadNote(Value, tag="note"):
    text: str


class DownloadResult(Value, tag="result", omit_defaults=False):
    """`fetched` is False if the file was already here."""

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
def progress_bar() -> Generator[tuple[Progress, ShowNote], None, None]:
    """Show a progress bar on a terminal, else a line for each tenth."""
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


def part_progress(count: int, report: Progress) -> Progress:
    """Call `report` once for each of `count` parts; again from the start if another source restarts the download."""
    reported_part, last_here = -1, 0

    def progress(here: int, whole: int) -> None:
        nonlocal reported_part, last_here
        part = count * here // whole
        if part > reported_part or here < last_here:
            report(here, whole)
            reported_part = part
        last_here = here

    return progress


async def model_to_use(models: Models, options: ModelOptions, yes: bool) -> str | None:
    """Return the model that was named, or choose one and print the reason on stderr.

    An embedded model is downloaded if it was requested by name or by `--fetch`. With `yes` nothing is asked.
    None means that the person chose to watch a demo.
    """
    model, silent = options.model, yes or not at_terminal()
    if not model:
        choice = await choose_model(models, may_fetch(options, yes), silent)
        if choice is None:
            return None
        notify(f"septet: using {choice.name}: {choice.reason}")
        model = choice.name
    if model.partition("/")[0] == "local" and (silent or options.fetch):
        await fetch_embedded(models, model.partition("/")[2])
    return model


def may_fetch(options: ModelOptions, yes: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Download a gigabyte only on request: `--fetch`, or `./run --yes` of a checkout, as the quickstart says."""
    return options.fetch or (yes and bool(environment.get(QUICKSTART)))


async def choose_model(models: Models, offer_embedded: bool, silent: bool) -> ModelChoice | None:
    """Ask at a terminal until a model is found; elsewhere raise NoModel."""
    while True:
        try:
            return await models.choose(offer_embedded=offer_embedded)
        except NoModel:
            if silent:
                raise
        notify(MENU)
        choice_number = (await ask_line("> ")).strip()
        if choice_number == "1":
            return None
        await follow_choice(models, choice_number)


async def follow_choice(models: Models, choice_number: str) -> None:
    if choice_number == "2":
        provider = await ask_provider()
        key = ask_secret("API key")
        try:
            await store_checked_key(models, provider, key)
        except BadConfig as error:
            notice(str(error))
    elif choice_number == "4":
        models.check_runtime()
        await fetch_embedded(models, "")
    elif choice_number != "3":
        raise NoModel("no model was chosen", "septet demo shows a team at work, with no key")


async def ask_provider() -> str:
    return await ask_word("provider (openai or anthropic): ", PROVIDERS)


async def store_checked_key(models: Models, provider: str, key: str, keyring: bool = False) -> None:
    """Store a key that the provider accepts, and say where; raises BadConfig if it is refused."""
    answer = await models.check_key(provider, key)
    models.store_key(provider, key, keyring)
    where = "the keyring" if keyring else f"{models.keys.path}, readable only by you"
    notice(f"stored the key of {provider} in {where}; {answer}")


async def ask_word(prompt: str, words: tuple[str, ...]) -> str:
    """Ask until the person types one of the words."""
    while (word := (await ask_line(prompt)).strip().lower()) not in words:
        notify(f"septet: please type {' or '.join(words)}")
    return word
