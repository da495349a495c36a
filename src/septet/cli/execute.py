"""`exec`: run something exactly as the runner would, with the same sandbox, limits and result."""

import sys

import click

from septet.cli.options import Amount, Folder, Reach
from septet.cli.output import notify


@click.command("exec", epilog="Example: septet exec -- python -c 'print(6 * 7)'")
@click.argument("command", nargs=-1, required=True, metavar="FILE | -- CMD…")
@click.option("-C", "workspace", type=Folder(), default=".", help="The folder to run in.")
@click.option(
    "--kernel", is_flag=True, help="Run FILE's cells (split by # %%, or a notebook's) in one kernel."
)
@click.option(
    *("--time", "--max-time", "time"),
    type=Amount(),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds that it may take.",
)
@click.option(
    "--memory",
    type=click.IntRange(16, 1 << 24),
    default=2048,
    show_default=True,
    metavar="MB",
    help="Megabytes that it may use.",
)
@click.option(
    *("--run-as", "--as", "way"),
    type=click.Choice(["auto", "script", "screen", "server"]),
    default="auto",
    show_default=True,
    help="How a FILE is run: on a screen and as a server it leaves what it showed.",
)
@click.option(
    "--network",
    type=Reach(),
    default="off",
    show_default=True,
    help="What it can reach: off, on, or HOST,HOST.",
)
@click.option(
    "--packages",
    type=click.Choice(["off", "ask", "auto"]),
    default="off",
    show_default=True,
    help="Whether what a FILE imports and is not here is installed, for this folder only.",
)
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object.")
@click.option("--unsafe-local", is_flag=True, help="Run WITHOUT a sandbox, with your rights.")
def execute(**given: "str | bool") -> int:
    """Run a FILE, or any command after --, in the sandbox; its exit code is ours."""
    import anyio

    from septet.cli.executing import Wish, carried_out, concluded

    wish = Wish(**given)  # pyright: ignore[reportArgumentType]  # click has checked them
    try:
        shown = anyio.run(carried_out, wish)
    except KeyboardInterrupt:
        notify("septet: interrupted; everything that ran is ended")
        return 130
    code = concluded(shown, wish.as_json)
    sys.stdout.flush()
    return code
