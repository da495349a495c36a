"""`exec`: run something exactly as the runner would, with the same sandbox, limits and result."""

import sys
from pathlib import Path

import click


@click.command("exec", epilog="Example: septet exec -- python -c 'print(6 * 7)'")
@click.argument("command", nargs=-1, required=True)
@click.option("-C", "workspace", type=click.Path(path_type=Path), default=".", help="The folder to run in.")
@click.option("--max-time", type=float, default=60.0, show_default=True, help="Seconds it may take.")
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object.")
@click.option("--unsafe-local", is_flag=True, help="Run WITHOUT a sandbox, with your rights.")
def execute(
    command: tuple[str, ...], workspace: Path, max_time: float, as_json: bool, unsafe_local: bool
) -> int:
    """Run a Python FILE, or any command after --, in the sandbox; its exit code is ours."""
    import anyio

    from septet.domain.codec import ENCODER
    from septet.domain.runs import Job, Limits
    from septet.domain.terminals import neutral
    from septet.wiring.diagnosis import run_once

    words = ("python", *command) if len(command) == 1 and command[0].endswith(".py") else command
    folder = str(workspace.expanduser().absolute())
    job = Job(command=words, workspace=folder, limits=Limits(seconds=max_time, cpu_seconds=max_time))
    result = anyio.run(run_once, job, unsafe_local)
    if as_json:
        sys.stdout.write(ENCODER.encode(result).decode() + "\n")
    else:
        clean = neutral if sys.stdout.isatty() else str
        sys.stdout.write(clean(result.stdout))
        sys.stderr.write(clean(result.stderr))
        if result.stopped_by:
            sys.stderr.write(f"septet: stopped by the {result.stopped_by} limit\n")
    sys.stdout.flush()
    return result.exit_code if result.stopped_by is None else 124
