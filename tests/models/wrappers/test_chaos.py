"""A bad day of the provider, by a seed: chats end undamaged or stop resumable all the same."""

import pytest
from models.asking import open_openai
from models.chatting import chat, expected, scripted, transcript

from septet.domain.events import ModelAnswered
from septet.errors import ModelFailed
from septet.models.http import HttpClient
from septet.models.wrappers.chaos import Chaos
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.stores.memory import MemoryStore
from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(total_seconds=20.0, attempts=4, first_wait=0.001, max_wait=0.002)


@pytest.mark.parametrize("seed", range(12))
async def test_a_chat_on_a_bad_day_is_resumed_until_it_is_whole(seed: int) -> None:
    store = MemoryStore()
    async with serve_mock(scripted) as server, HttpClient() as wire:
        model = make_resilient(
            [Candidate("m", Chaos(open_openai(server, wire), seed, probability=0.6))], QUICK, print
        )
        for _ in range(40):
            try:
                state = await chat(store, model)
                break
            except ModelFailed:
                continue
        else:
            pytest.fail("forty resumes were not enough")
    assert transcript(state) == expected()
    answers = [one for one in await store.read("chat") if isinstance(one.event, ModelAnswered)]
    assert len(answers) == len(expected())
