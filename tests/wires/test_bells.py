"""A bell wakes who waits, and who waits in vain is told so, however often it has waited before."""

import anyio
import pytest

from septet.cluster.client import Bell

pytestmark = pytest.mark.anyio
LONG = 60.0


async def rung(bell: Bell) -> bool:
    """Wait long, and be rung for while waiting."""
    outcomes: list[bool] = []

    async def wait() -> None:
        outcomes.append(await bell.wait(LONG))

    with anyio.fail_after(LONG / 2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            bell.ring()
            bell.ring()
    return outcomes == [True]


async def test_who_waits_is_woken_each_time() -> None:
    bell = Bell()

    assert [await rung(bell) for _ in range(3)] == [True, True, True]
    bell.hush()


async def test_nobody_rings() -> None:
    assert not await Bell().wait(0.01)


async def test_a_short_wait_after_a_long_one_is_short() -> None:
    bell = Bell()
    await rung(bell)

    with anyio.fail_after(LONG / 2):
        assert not await bell.wait(0.01)


async def test_a_long_wait_after_a_short_one_is_not_cut_short() -> None:
    bell = Bell()
    with anyio.move_on_after(0.001):
        await bell.wait(0.02)

    assert await rung(bell)
    bell.hush()


async def test_a_ring_that_nobody_waited_for_is_over() -> None:
    bell = Bell()
    bell.ring()

    assert not await bell.wait(0.01)
