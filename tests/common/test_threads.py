"""Blocking work with and without an event loop."""

import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from septet.common.threads import run_blocking, run_directly
from septet.stores.sqlite import open_store


def test_without_an_event_loop_it_is_done_at_once() -> None:
    assert run_directly(run_blocking(threading.get_ident)) == threading.get_ident()


@pytest.mark.anyio
async def test_beside_an_event_loop_it_is_done_in_a_thread() -> None:
    assert await run_blocking(threading.get_ident) != threading.get_ident()


def test_a_store_is_read_without_an_event_loop(tmp_path: Path) -> None:
    async def chats() -> int:
        async with open_store(tmp_path / "septet.db") as store:
            return len(await store.chats())

    assert run_directly(chats()) == 0


def test_what_waits_for_something_else_is_refused() -> None:
    class Waiting:
        def __await__(self) -> Generator[None, None, None]:
            yield None

    async def wait() -> None:
        await Waiting()

    with pytest.raises(RuntimeError, match="event loop"):
        run_directly(wait())
