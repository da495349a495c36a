"""Runs several programs in the sandbox and collects the outcomes of examples and calls for each."""

from collections.abc import Sequence
from importlib.resources import files

import msgspec

from septet.common.values import Value
from septet.domain.runs import Job
from septet.domain.state import State
from septet.ports import Sandbox
from septet.team.agreement import Outcomes
from septet.team.goal_examples import StatedExample

PROGRAM = "trial_program.py"
SECONDS_A_PROGRAM = 10.0
"""Longer than the trial program's own limit per program: this limit applies only if that one fails."""


class Questions(Value):
    """The inputs for the programs: examples that the goal states, votes, and probes."""

    checks: tuple[StatedExample, ...] = ()
    votes: tuple[StatedExample, ...] = ()
    calls: tuple[str, ...] = ()


class TrialTask(Value):
    """The input of the trial program."""

    programs: tuple[str, ...]
    examples: tuple[StatedExample, ...] = ()
    calls: tuple[str, ...] = ()


Told = list[list[str | bool]]
"""The output for one program, in order: `["check", held, got]` and `["call", outcome]`."""


async def try_programs(
    state: State, programs: Sequence[str], questions: Questions, sandbox: Sandbox, folder: str
) -> list[Outcomes]:
    """Run each program and return its outcomes; they are empty for one that could not be run."""
    task = TrialTask(
        programs=tuple(programs), examples=(*questions.checks, *questions.votes), calls=questions.calls
    )
    seconds = min(state.team.limits.seconds, 10.0 + SECONDS_A_PROGRAM * len(programs))
    job = Job(
        command=("python", "-c", files("septet.agents").joinpath(PROGRAM).read_text()),
        workspace=folder,
        limits=msgspec.structs.replace(state.team.limits, seconds=seconds),
        stdin=msgspec.json.encode(task),
        home=state.workspace,
    )
    said = bytearray()
    await sandbox.run(job, lambda stream, piece: said.extend(piece if stream == "stdout" else b""))
    try:
        told = msgspec.json.decode(bytes(said), type=list[Told])
    except msgspec.MsgspecError:
        told = []
    told += [[] for _ in range(len(programs) - len(told))]
    return [outcomes_of(one, questions) for one in told]


def outcomes_of(told: Told, questions: Questions) -> Outcomes:
    """Convert the output of a program; an item that is missing after a timeout is not met and has no value."""
    checks = [(one[1] is True, str(one[2])) for one in told if one[0] == "check"]
    probes = [str(one[1]) for one in told if one[0] == "call"]
    wanted = len(questions.checks) + len(questions.votes)
    checks += [(False, "t:")] * (wanted - len(checks))
    stated = len(questions.checks)
    return Outcomes(
        checks=tuple(held for held, _ in checks[:stated]),
        votes=tuple(held for held, _ in checks[stated:]),
        probes=(*probes, *(["t:"] * (len(questions.calls) - len(probes)))),
        got=tuple(got for _, got in checks[:stated]),
    )
