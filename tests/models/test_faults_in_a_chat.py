"""Every fault at turn 5 of a ten-turn chat: it finishes undamaged, or stops and resumes undamaged."""

from typing import get_args

import pytest
from models.asking import WIRES, WRITE, ask, open_openai, question
from models.chatting import TURNS, chat, expected, scripted, texts, transcript
from msgspec.structs import replace

from septet.domain.events import ModelAnswered
from septet.domain.messages import ToolCall
from septet.errors import ModelFailed, NoModel
from septet.models.credentials import bearer
from septet.models.faults import RateLimited, ServerError
from septet.models.http import HttpClient
from septet.models.providers.openai import OpenAIModel
from septet.models.wrappers.retry import RetryPolicy
from septet.models.wrappers.wrapper_stack import Candidate, make_resilient
from septet.ports import Model
from septet.stores.memory import MemoryStore
from septet.testing.replies import Fault, ReceivedRequest, Reply, in_order
from septet.testing.server import MockServer, serve_mock

pytestmark = pytest.mark.anyio

FAULTS: tuple[Fault, ...] = get_args(Fault)
PASSING = tuple(fault for fault in FAULTS if fault != "filtered")
QUICK = RetryPolicy(total_seconds=20.0, attempts=4, first_wait=0.01, max_wait=0.02)
SILENT = 0.3


def quick_wire() -> HttpClient:
    return HttpClient(read_timeout=SILENT)


def opened(kind: str, server: MockServer, wire: HttpClient, patience: RetryPolicy = QUICK) -> Model:
    return make_resilient([Candidate(kind, WIRES[kind](server, wire, None))], patience, print)


@pytest.mark.parametrize("kind", ["openai", "anthropic", "pydantic-ai"])
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.torture
async def test_a_fault_that_comes_once_leaves_no_trace_in_the_chat(kind: str, fault: Fault) -> None:
    async with serve_mock(scripted, faults={5: fault}, retry_after="0.05") as server, quick_wire() as wire:
        state = await chat(MemoryStore(), opened(kind, server, wire))
    assert transcript(state) == expected()
    assert len(server.seen) == TURNS + 1


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "bad arguments"])
async def test_a_fault_that_stays_stops_the_chat_resumable_and_nothing_is_bought_twice(fault: Fault) -> None:
    store = MemoryStore()
    lasting: dict[int, Fault] = dict.fromkeys(range(5, 100), fault)
    async with serve_mock(scripted, faults=lasting, retry_after="0.01") as server, quick_wire() as wire:
        with pytest.raises(ModelFailed) as failed:
            await chat(store, opened("openai", server, wire))
    assert failed.value.exit_code == 75
    assert "\n" not in str(failed.value)
    assert len([one for one in await store.read("chat") if isinstance(one.event, ModelAnswered)]) == 4
    async with serve_mock(scripted) as server, quick_wire() as wire:
        state = await chat(store, opened("openai", server, wire))
    assert transcript(state) == expected()
    assert len(server.seen) == TURNS - 4


async def test_a_tool_call_with_broken_arguments_is_asked_for_once_more() -> None:
    calls = (ToolCall(id="call_9", name="write", arguments='{"path": "main.py", "content": "print()"}'),)

    def script(seen: ReceivedRequest) -> Reply:
        return replace(scripted(seen), calls=calls)

    async with serve_mock(script, faults={5: "bad arguments"}) as server, quick_wire() as wire:
        state = await chat(MemoryStore(), opened("openai", server, wire), tools=(WRITE,))
    answers = [said.answer for said in state.talk.messages if isinstance(said, ModelAnswered)]
    assert [answer.calls for answer in answers] == [calls] * TURNS
    assert any("not a JSON object" in text for text in texts(server.seen[5]))
    assert answers[4].usage.prompt >= 2 * answers[3].usage.prompt


async def test_calls_that_stay_broken_go_on_as_they_came() -> None:
    lasting: dict[int, Fault] = dict.fromkeys(range(1, 100), "bad arguments")
    async with serve_mock(scripted, faults=lasting) as server, quick_wire() as wire:
        _, answer = await ask(opened("openai", server, wire), replace(question("turn 1"), tools=(WRITE,)))
    assert len(server.seen) == 2
    assert answer.calls[0].arguments.startswith('{"path"')


async def test_a_context_that_is_too_small_gets_less_of_the_history_but_the_whole_role() -> None:
    async with (
        serve_mock(scripted, faults={5: "context too long", 6: "context too long"}) as server,
        quick_wire() as wire,
    ):
        state = await chat(MemoryStore(), opened("openai", server, wire))
    lengths = [sum(map(len, texts(seen))) for seen in server.seen[4:8]]
    assert lengths[0] > lengths[1] > lengths[2] < lengths[3]
    assert texts(server.seen[6])[0] == "You write together."
    assert texts(server.seen[6])[-1] == "turn 5"
    assert transcript(state) == expected()


async def test_an_unknown_name_stops_the_chat_resumable() -> None:
    async with quick_wire() as wire:
        lost = OpenAIModel("http://nowhere.invalid/v1/chat/completions", "m", bearer("k"), wire)
        with pytest.raises(ModelFailed, match=r"nowhere\.invalid.*network"):
            await chat(MemoryStore(), make_resilient([Candidate("openai/m", lost)], QUICK, print))


async def test_who_waits_for_a_service_that_stays_away_is_told_so() -> None:
    told: list[str] = []
    away: dict[int, Fault] = dict.fromkeys(range(5, 8), "unavailable")
    async with serve_mock(scripted, faults=away, retry_after="0.01") as server, quick_wire() as wire:
        state = await chat(
            MemoryStore(), make_resilient([Candidate("m", open_openai(server, wire))], QUICK, told.append)
        )
    assert transcript(state) == expected()
    assert len(told) == len(away) - 1, "a single hitch is not worth a word"
    assert all(line.startswith("no answer yet (") and line.endswith("next attempt in 0 s") for line in told)


async def test_a_wrong_key_is_the_persons_to_fix_and_is_not_tried_again() -> None:
    async with serve_mock(scripted, key="another") as server, quick_wire() as wire:
        with pytest.raises(NoModel, match="septet login") as failed:
            await chat(MemoryStore(), opened("openai", server, wire))
    assert failed.value.exit_code == 5
    assert len(server.seen) == 1


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "bad arguments"])
async def test_the_next_model_answers_when_the_first_cannot(fault: Fault) -> None:
    told: list[str] = []
    failing: dict[int, Fault] = dict.fromkeys(range(5, 100), fault)
    async with (
        serve_mock(scripted, faults=failing, retry_after="0.01") as strong,
        serve_mock(scripted) as cheap,
        quick_wire() as wire,
    ):
        pair = [Candidate("strong", open_openai(strong, wire)), Candidate("cheap", open_openai(cheap, wire))]
        state = await chat(MemoryStore(), make_resilient(pair, replace(QUICK, attempts=1), told.append))
    assert transcript(state) == expected()
    assert len(cheap.seen) == TURNS - 4
    assert told[0].startswith("strong failed (")


@pytest.mark.parametrize("fault", ["reset midway", "truncated", "stall midway"])
async def test_watchers_are_told_when_an_answer_starts_over(fault: Fault) -> None:
    async with serve_mock(scripted, faults={1: fault}) as server, quick_wire() as wire:
        deltas, answer = await ask(opened("openai", server, wire), question("turn 1"))
    again = [place for place, delta in enumerate(deltas) if delta.restarted]
    assert len(again) == 1
    assert "".join(delta.text for delta in deltas[again[0] :]) == answer.text


def test_waits_double_with_jitter_and_keep_the_servers_wish() -> None:
    patience = RetryPolicy(first_wait=1.0, max_wait=5.0)
    assert [patience.wait(n, ServerError("x"), 1.0) for n in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 5.0]
    assert patience.wait(3, ServerError("x"), 0.0) == 2.0
    assert patience.wait(1, RateLimited("x", after=20.0), 0.5) >= 20.0


async def test_a_wait_that_would_end_after_the_deadline_is_not_begun() -> None:
    async with (
        serve_mock(scripted, faults={1: "rate limited"}, retry_after="3600") as server,
        HttpClient() as wire,
    ):
        with pytest.raises(ModelFailed, match="slow down"):
            await ask(opened("openai", server, wire), question("turn 1"))
    assert len(server.seen) == 1


async def test_a_server_that_drips_for_ever_meets_the_total_deadline() -> None:
    endless = Reply(text="x" * 10_000, piece=1, pause=0.02)
    async with serve_mock(in_order(endless)) as server, quick_wire() as wire:
        with pytest.raises(ModelFailed, match="deadline"):
            await ask(opened("openai", server, wire, replace(QUICK, total_seconds=0.2)), question("turn 1"))
