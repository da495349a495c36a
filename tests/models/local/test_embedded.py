"""The embedded model for real: started, shared, killed, started again, and gone when nobody asks.

Needs the smallest model's file: `septet models get qwen2.5-coder-0.5b`.
"""

import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest
from models.asking import ask, question
from msgspec.structs import replace

from septet.models.credentials import bearer
from septet.models.faults import AccessDenied
from septet.models.http import HttpClient
from septet.models.local.catalogue import find_weights
from septet.models.local.download import ModelStore
from septet.models.local.embedded import EmbeddedModel, EmbeddedServer, has_runtime
from septet.models.local.server import ServerCard
from septet.models.providers.openai import OpenAIModel
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.settings.home import find_home

ENTRY = find_weights("qwen2.5-coder-0.5b")
HERE = ModelStore(find_home().cache / "models", HttpClient())

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.torture,
    pytest.mark.skipif(not has_runtime(), reason="septet[local] is not installed"),
    pytest.mark.skipif(not HERE.has(ENTRY), reason=f"{ENTRY.name} was not fetched"),
]

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.fixture
async def wire() -> AsyncIterator[HttpClient]:
    async with HttpClient() as wire:
        yield wire


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The verified file under a name of its own: its server is this test's alone."""
    own = tmp_path / "model.gguf"
    try:
        os.link(HERE.path(ENTRY), own)
    except OSError:
        shutil.copy(HERE.path(ENTRY), own)
    return own


def server(file: Path, wire: HttpClient, idle_seconds: float = 60.0) -> EmbeddedServer:
    return EmbeddedServer(ENTRY, file, wire, idle_seconds)


def end(card: ServerCard) -> None:
    os.kill(card.pid, signal.SIGKILL)
    os.waitpid(card.pid, 0)


async def test_it_answers_by_a_schema_and_survives_the_death_of_its_server(
    file: Path, wire: HttpClient
) -> None:
    place = server(file, wire)
    patience = RetryPolicy(total_seconds=300, first_wait=0.1)
    model = make_resilient(
        [Candidate("local/small", EmbeddedModel(ENTRY, place, wire), "free")], patience, print
    )
    request = replace(question("What is 2 + 3?"), schema=SCHEMA, max_tokens=30, temperature=0.0)
    _, first = await ask(model, request)
    assert isinstance(msgspec.json.decode(first.text)["answer"], int)
    assert first.cost == 0.0
    assert first.usage.completion > 0
    killed = await place.card()
    end(killed)
    _, second = await ask(model, request)
    assert second.text == first.text
    again = await place.card()
    assert again.pid != killed.pid
    end(again)


async def test_all_agents_share_one_server_and_a_stranger_is_not_let_in(file: Path, wire: HttpClient) -> None:
    cards: list[ServerCard] = []

    async def look() -> None:
        cards.append(await server(file, wire).card())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(look)
    assert len({card.pid for card in cards}) == 1
    assert file.with_suffix(".server").stat().st_mode & 0o777 == 0o600
    address = f"{cards[0].url}/v1/chat/completions"
    with pytest.raises(AccessDenied):
        await ask(OpenAIModel(address, ENTRY.name, bearer("wrong"), wire), question("hi"))
    end(cards[0])


async def test_it_ends_by_itself_when_nobody_asks_and_comes_back_when_somebody_does(
    file: Path, wire: HttpClient
) -> None:
    card = await server(file, wire, idle_seconds=1.0).card()
    with anyio.fail_after(120):
        await anyio.to_thread.run_sync(os.waitpid, card.pid, 0, abandon_on_cancel=True)
    assert not file.with_suffix(".server").exists()
    again = await server(file, wire).card()
    assert again.pid != card.pid
    end(again)
