"""A disk that fills up and clocks that jump: a chat stops in one line, goes on when it can, and ends as ever."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync
from cli.commands import PATIENCE, SCRIPTS, Septet

from septet.domain.codec import decode
from septet.domain.events import ModelAnswered, Recorded
from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio

TALK = f"scripted:{SCRIPTS / 'talk.yaml'}"
TALKING = ("run", "a poem", "-t", "writer-editor", "-n", "poem", "-q", "--max-time", "900s")
RUN = (*TALKING, "-m", TALK)
SPOKEN, OVER = 6, 0
PAGE = 4096
HELD = 4
"""The request that the first process waits for when it is killed."""


def log_of(septet: Septet) -> list[Recorded]:
    return [decode(line) for line in septet("export", "poem", "--format", "jsonl").stdout.splitlines()]


def said(log: Sequence[Recorded]) -> list[tuple[str, str]]:
    return [(one.event.role, one.event.answer.text) for one in log if isinstance(one.event, ModelAnswered)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    septet = Septet(tmp_path_factory.mktemp("whole") / "home")
    done = septet(*RUN)
    assert done.returncode == OVER, done.stderr
    found = said(log_of(septet))
    assert len(found) == SPOKEN
    return found


def go_on(septet: Septet) -> subprocess.CompletedProcess[str]:
    """Resumes the chat, or begins it if it did not come so far."""
    listed = septet("show", "poem").returncode == 0
    return septet(*(("resume", "poem", "-q") if listed else RUN))


def check_full_disk(disk: Path, free: int, whole: list[tuple[str, str]]) -> bool:
    """Whether the disk was too small for the chat, which in any case ends as ever."""
    (disk / "ballast").write_bytes(b"x" * ((1 << 20) - free * PAGE))
    septet = Septet(disk / "home")
    first = septet(*RUN)
    (disk / "ballast").unlink()
    if stopped := first.returncode != OVER:
        assert "Traceback" not in first.stderr
        assert first.stderr.startswith("septet: "), first.stderr
        again = go_on(septet)
        assert again.returncode == OVER, again.stderr
    assert said(log_of(septet)) == whole
    subprocess.run(["rm", "-r", str(disk / "home")], check=True)
    return stopped


def test_a_chat_on_a_full_disk_stops_in_one_line_and_goes_on_where_there_is_room(
    small_disk: Callable[[str], Path], whole: list[tuple[str, str]]
) -> None:
    disk = small_disk("size=1m")
    assert [check_full_disk(disk, free, whole) for free in (25, 250)] == [True, False]


@pytest.mark.torture
def test_a_disk_may_be_full_at_any_page_of_a_chat(
    small_disk: Callable[[str], Path], whole: list[tuple[str, str]]
) -> None:
    disk = small_disk("size=1m")
    assert sum(check_full_disk(disk, free, whole) for free in range(0, 120, 2)) > 20


@asynccontextmanager
async def killed_midway(septet: Septet) -> AsyncGenerator[MockServer]:
    """A chat whose process was killed when three answers were stored and the next one was asked for."""
    held = anyio.Event()

    def reply(seen: ReceivedRequest) -> Reply:
        if seen.number == HELD:
            held.set()
        return Reply(text=f"word {seen.number}")

    with anyio.fail_after(2 * PATIENCE):
        async with serve_mock(reply, faults={HELD: "stall"}) as server:
            command = [*septet.command, *TALKING, "-m", f"url:{server.url}#m"]
            environment, folder = septet.environment, septet.home.parent
            async with await anyio.open_process(command, env=environment, cwd=folder, stdin=None) as first:
                await held.wait()
                first.kill()
            yield server


def check_whole(septet: Septet, server: MockServer) -> list[Recorded]:
    log = log_of(septet)
    numbers = [1, 2, 3, 5, 6, 7]
    assert said(log) == [
        (role, f"word {number}") for role, number in zip(["writer", "editor"] * 3, numbers, strict=True)
    ]
    assert len(server.seen) == numbers[-1], "only what was held is asked for again"
    assert [one.seq for one in log] == list(range(1, len(log) + 1))
    return log


async def test_a_chat_on_a_disk_that_became_read_only_stops_in_one_line(
    small_disk: Callable[[str], Path],
) -> None:
    septet = Septet(small_disk("size=4m") / "home")
    async with killed_midway(septet) as server:
        small_disk("size=4m,ro")
        stopped = await run_sync(septet, "resume", "poem", "-q")
        small_disk("size=4m,rw")
        assert len(server.seen) == HELD, "nothing is bought that cannot be stored"
        again = await run_sync(septet, "resume", "poem", "-q")
    assert stopped.returncode not in (OVER, 1), stopped.stderr
    assert stopped.stderr.startswith("septet: ")
    assert len(stopped.stderr.splitlines()) == 1, stopped.stderr
    assert again.returncode == OVER, again.stderr
    check_whole(septet, server)


JUMPING = """
import itertools, time
real, days = time.time, ((-1) ** times * times for times in itertools.count())
time.time = lambda: real() + next(days) * 86_400
from septet.cli.main import main
main()
"""


class OnJumpingClock(Septet):
    """Each time that it is read, the wall clock is more days ahead, or behind."""

    command = (sys.executable, "-c", JUMPING)


async def test_a_wall_clock_that_jumps_changes_neither_budgets_nor_order(tmp_path: Path) -> None:
    septet = OnJumpingClock(tmp_path / "home")
    async with killed_midway(septet) as server:
        done = await run_sync(septet, "resume", "poem", "-q")
    assert done.returncode == OVER, done.stderr
    log = check_whole(septet, server)
    assert [one.at for one in log] == sorted(one.at for one in log)
    assert log[-1].at - log[0].at > 86_400, "the clock did jump"
    assert all(one.event.answer.seconds < PATIENCE for one in log if isinstance(one.event, ModelAnswered))
    assert "rounds over" in Septet(septet.home)("list").stdout


class AfterALongSleep(Septet):
    """The clocks that count since the machine started are a year ahead: it was started anew, or slept."""

    prefix = (
        "unshare",
        "--time",
        "--monotonic",
        "31536000",
        "--boottime",
        "31536000",
        "--fork",
        "--kill-child",
    )
    command = (*prefix, *Septet.command)


async def test_clocks_that_begin_anew_between_two_processes_change_nothing(tmp_path: Path) -> None:
    septet, later = Septet(tmp_path / "home"), AfterALongSleep(tmp_path / "home")
    if (await anyio.run_process([*later.prefix, "true"], check=False)).returncode != 0:
        pytest.skip("no time namespace is permitted here")
    async with killed_midway(septet) as server:
        done = await run_sync(later, "resume", "poem", "-q")
    assert done.returncode == OVER, done.stderr
    check_whole(septet, server)
