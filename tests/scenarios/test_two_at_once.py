"""Two who would go on with one chat: the second is told who has it, and nothing is bought twice."""

import socket
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.to_thread import run_sync
from cli.commands import PATIENCE, Septet

from septet.domain.messages import Usage
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio
PLAN = "1. It prints hello\n   check: command python hello.py => hello\nrun: python hello.py\n"
CODE = (
    '```python hello.py\ndef word():\n    return "hello"\n\n\nif __name__ == "__main__":\n    print(word())\n```\n\n'
    '```python test_hello.py\nfrom hello import word\n\n\ndef test_word():\n    assert word() == "hello"\n```\n'
)


class Thinker:
    """Its second question is never answered; whoever waits for that is told when it comes."""

    def __init__(self) -> None:
        self.stalled = anyio.Event()
        self._programs = iter((CODE, CODE, CODE.replace('return "hello"', 'return "hello"  # in green')))

    def __call__(self, seen: ReceivedRequest) -> Reply:
        if seen.number == 2:
            self.stalled.set()
        part = str(seen.messages[0])
        reviewer, planner = "You are the reviewer" in part, "You are the planner" in part
        text = PLAN if planner else "verdict: accept\n" if reviewer else next(self._programs)
        return Reply(text=text, usage=Usage(prompt=9, completion=9))


async def started(septet: Septet, args: Sequence[str]) -> Process:
    return await anyio.open_process(
        [*septet.command, *args], env=septet.environment, cwd=septet.home.parent, stdin=None
    )


async def test_a_second_resume_is_refused_until_the_first_has_died(tmp_path: Path) -> None:
    septet, thinker = Septet(tmp_path / "home"), Thinker()
    async with serve_mock(thinker, faults={2: "stall"}) as server:
        model = f"url:{server.url}#mock"
        async with await started(septet, ["run", "say hello", "-m", model, "--yes", "-n", "hello"]) as first:
            with anyio.fail_after(PATIENCE):
                await thinker.stalled.wait()
            second = await run_sync(septet, "resume", "hello")
            told = await run_sync(septet, "resume", "hello", "in green please")
            gone = await run_sync(septet, "rm", "hello", "--yes")
            asked = len(server.seen)
            first.kill()
        third = await run_sync(septet, "resume", "hello", "--json")

    who = f"process {first.pid} on {socket.gethostname()} works on 'hello' already"
    assert (second.returncode, second.stdout, asked) == (75, "", 2)
    assert who in second.stderr
    assert (told.returncode, gone.returncode) == (75, 75)
    assert "your message was sent to it" in told.stderr
    assert third.returncode == 0, third.stderr
    assert "in green please" in septet("export", "hello").stdout
