"""An embedded model on its way here, as a person sees it; and the model to think with when none was named."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from septet.cli.live import write_line
from septet.wiring.models import Models

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


async def model_to_use(models: Models, given: str, yes: bool) -> str:
    """The model that was named, or the one that is chosen, with the reason on stderr.

    `local` is fetched when the person has said yes beforehand; else they are told how.
    """
    if not given:
        choice = await models.choose(offer_embedded=yes)
        write_line(sys.stderr, f"septet: thinking with {choice.name}: {choice.reason}")
        given = choice.name
    if given.partition("/")[0] == "local" and (yes or not sys.stdin.isatty()):
        await fetch_embedded(models, given.partition("/")[2])
    return given
