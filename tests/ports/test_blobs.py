"""What the Blobs port promises, of every adapter."""

from hashlib import sha256

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from septet.errors import LogDamaged
from septet.ports import Blobs

pytestmark = pytest.mark.anyio


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=4096))
async def test_a_content_is_found_by_its_sha256(blobs: Blobs, content: bytes) -> None:
    address = await blobs.put(content)

    assert address == sha256(content).hexdigest()
    assert await blobs.get(address) == content


async def test_a_big_content_arrives_whole(blobs: Blobs) -> None:
    content = bytes(range(256)) * (50 * 4096)

    assert await blobs.get(await blobs.put(content)) == content


async def test_the_same_content_may_be_put_again(blobs: Blobs) -> None:
    assert await blobs.put(b"twice") == await blobs.put(b"twice")


async def test_many_put_at_once(blobs: Blobs) -> None:
    contents = [bytes([number]) * (number % 3 * 100_000) for number in range(20)] * 2

    async with anyio.create_task_group() as group:
        for content in contents:
            group.start_soon(blobs.put, content)

    for content in contents:
        assert await blobs.get(sha256(content).hexdigest()) == content


async def test_a_missing_content_is_named(blobs: Blobs) -> None:
    with pytest.raises(LogDamaged, match="missing"):
        await blobs.get(sha256(b"never put").hexdigest())


@pytest.mark.parametrize("address", ["", "../../secret", "/etc/passwd", "AB" * 32, "0" * 63])
async def test_what_is_not_an_address_is_refused(blobs: Blobs, address: str) -> None:
    with pytest.raises(LogDamaged):
        await blobs.get(address)
