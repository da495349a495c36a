"""One chat, one budget, several processes: the budget holds across them, and no answer is bought twice."""

from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.to_thread import run_sync
from cli.commands import PATIENCE, Septet

from septet.domain.codec import decode
from septet.domain.events import ChatEnded, ModelAnswered
from septet.domain.messages import Usage
from septet.testing.replies import Fault, ReceivedRequest, Reply
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio
TEAM = """\
floor: group_chat
members:
- {role: writer, name: writer}
- {role: editor, name: editor}
budget: {rounds: 50, tokens: 4500}
"""
HELD = (2, 3)
"""The requests that are not answered to their end: the same question, asked by the first process and by another."""
AT_ONCE = 3


class Talkers:
    """Every answer is a thousand tokens; who waits for a request that is held is told when it has come."""

    def __init__(self) -> None:
        self.held = {number: anyio.Event() for number in HELD}

    def __call__(self, seen: ReceivedRequest) -> Reply:
        if seen.number in HELD:
            self.held[seen.number].set()
        return Reply(text=f"word {seen.number}", usage=Usage(prompt=800, completion=200), piece=1)


async def begin(septet: Septet, *args: str) -> Process:
    return await anyio.open_process(
        [*septet.command, *args], env=septet.environment, cwd=septet.home.parent, stdin=None
    )


@pytest.mark.parametrize("fault", ["stall", "stall midway"])
async def test_several_resumes_at_once_and_kills_in_an_answer_keep_to_one_budget(
    tmp_path: Path, fault: Fault
) -> None:
    septet, talkers = Septet(tmp_path / "home"), Talkers()
    (tmp_path / "team.yaml").write_text(TEAM)
    with anyio.fail_after(2 * PATIENCE):
        async with serve_mock(talkers, faults=dict.fromkeys(HELD, fault)) as server:
            model = f"url:{server.url}#m"
            first = await begin(septet, "run", "talk", "-t", "team.yaml", "-m", model, "-n", "c", "-q")
            await talkers.held[2].wait()
            first.kill()
            await first.wait()
            processes = [await begin(septet, "resume", "c", "-q") for _ in range(AT_ONCE)]
            await talkers.held[3].wait()
            await all_but_one_ended(processes)
            (holder,) = [one for one in processes if one.returncode is None]
            holder.kill()
            await holder.wait()
            last = await run_sync(septet, "resume", "c", "-q")

    assert sorted(one.returncode or 0 for one in processes) == [-9, 75, 75]
    assert last.returncode == 3, last.stderr
    log = [decode(line).event for line in septet("export", "c", "--format", "jsonl").stdout.splitlines()]
    said = [(event.role, event.answer.text) for event in log if isinstance(event, ModelAnswered)]
    assert said == [("writer", "word 1"), ("editor", "word 4"), ("writer", "word 5"), ("editor", "word 6")]
    assert len(server.seen) == 6, "only what was held is asked for again"
    assert [event.detail for event in log if isinstance(event, ChatEnded)] == [
        "the token budget is too small for the writer's next turn: 4,000 of 4,500 used, about 1,000 needed"
    ]


async def all_but_one_ended(processes: list[Process]) -> None:
    async with anyio.create_task_group() as group:
        ended = 0

        async def wait(process: Process) -> None:
            nonlocal ended
            await process.wait()
            ended += 1
            if ended == len(processes) - 1:
                group.cancel_scope.cancel()

        for one in processes:
            group.start_soon(wait, one)
