"""All that a run said, out of the log and, where that has only head and tail, out of the blobs."""

from collections.abc import Sequence

from septet.domain.events import Recorded, RunFinished
from septet.domain.runs import Bound
from septet.domain.values import Value
from septet.errors import BadUsage
from septet.ports import Blobs

MOST_NAMED = 12


class Output(Value, omit_defaults=False):
    """A run's streams, whole up to the limit of output, as programs are told."""

    chat: str
    run: str
    purpose: str
    command: str
    exit_code: int
    stopped_by: Bound | None
    stdout: str
    stderr: str


def run_named(chat: str, log: Sequence[Recorded], name: str) -> RunFinished:
    """By the name that the log gave it or its beginning; without one, the newest run of the program."""
    runs = {event.id: event for one in log if isinstance(event := one.event, RunFinished)}
    if not runs:
        raise BadUsage(f"nothing has run in '{chat}' yet", f"see septet show {chat}")
    if not name.strip():
        return newest(list(runs.values()))
    wanted = " ".join(name.split()).lower()
    fitting = [run for key, run in runs.items() if key.lower().startswith(wanted)]
    exact = [run for run in fitting if run.id.lower() == wanted]
    if len(exact or fitting) == 1:
        return (exact or fitting)[0]
    if fitting:
        raise BadUsage(f"'{name}' fits {len(fitting)} runs of '{chat}'", f"say which of {names(fitting)}")
    raise BadUsage(f"'{chat}' has no run '{name[:80]}'", f"it has {names(list(runs.values()))}")


def newest(runs: Sequence[RunFinished]) -> RunFinished:
    programs = [run for run in runs if run.purpose == "run"]
    return (programs or runs)[-1]


def names(runs: Sequence[RunFinished]) -> str:
    told = ", ".join(f"'{run.id}'" for run in runs[-MOST_NAMED:])
    return f"{told} (the last {MOST_NAMED} of {len(runs)})" if len(runs) > MOST_NAMED else told


async def whole(run: RunFinished, blobs: Blobs) -> tuple[bytes, bytes]:
    """What it wrote to stdout and to stderr."""
    result = run.result
    stdout = await blobs.get(result.stdout_blob) if result.stdout_blob else result.stdout.encode()
    stderr = await blobs.get(result.stderr_blob) if result.stderr_blob else result.stderr.encode()
    return stdout, stderr


def output(chat: str, run: RunFinished, streams: tuple[bytes, bytes]) -> Output:
    stdout, stderr = (stream.decode(errors="replace") for stream in streams)
    return Output(
        chat=chat,
        run=run.id,
        purpose=run.purpose,
        command=run.command,
        exit_code=run.result.exit_code,
        stopped_by=run.result.stopped_by,
        stdout=stdout,
        stderr=stderr,
    )
