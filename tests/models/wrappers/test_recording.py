"""Recordings: the same chat once more from the file, and no secret in it."""

from pathlib import Path

import pytest
from models.asking import ask, question
from models.chatting import chat, expected, scripted, transcript
from msgspec.structs import replace

from septet.domain.messages import Answer, Delta, ToolCall
from septet.domain.teams import RoleSpec
from septet.errors import BadConfig, BadUsage
from septet.models.providers.replay import ReplayModel, load_recording, timed_deltas
from septet.models.wrappers.recording import MIN_SECRET_LENGTH, RecordingFile
from septet.settings.home import Home
from septet.stores.memory import MemoryStore
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock
from septet.wiring.models import Models, absolute_model_name, adapt_to_model

pytestmark = pytest.mark.anyio

SECRET = "sk-very-secret-4711"


def home(folder: Path) -> Home:
    return Home(data=folder, config=folder / "config", cache=folder / "cache")


async def test_a_recorded_chat_plays_back_the_same(tmp_path: Path) -> None:
    tape = tmp_path / "chat.jsonl"
    async with serve_mock(scripted) as server, Models(home(tmp_path), {}) as models:
        models.record(tape)
        first = await chat(MemoryStore(), models.open([f"url:{server.url}#m"]))
    again = await chat(MemoryStore(), ReplayModel(load_recording(tape), "chat"))
    assert transcript(first) == transcript(again) == expected()
    assert len(server.seen) == len(expected())


@pytest.mark.parametrize(
    "variable", ["OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "SEPTET_URL_KEY", "GROQ_API_KEY", "kept"]
)
async def test_secrets_are_not_in_the_recording(tmp_path: Path, variable: str) -> None:
    tape = tmp_path / "chat.jsonl"
    leaking = Reply(text=f"your key is {SECRET}, and {SECRET}", reasoning=SECRET)
    async with serve_mock(in_order(leaking)) as server:
        around = {variable: SECRET, "OPENAI_BASE_URL": server.url}
        async with Models(home(tmp_path), around) as models:
            models.keys.set("anthropic", SECRET if variable == "kept" else "")
            models.record(tape)
            await ask(models.open(["openai/m"]), question("go"))
    assert SECRET not in tape.read_text()
    assert load_recording(tape)


async def test_a_file_that_cannot_be_written_is_named_before_anything_is_paid(tmp_path: Path) -> None:
    async with Models(home(tmp_path), {}) as models:
        with pytest.raises(BadUsage, match="cannot be written"):
            models.record(tmp_path / "missing" / "chat.jsonl")


async def recorded_answer(tape: Path, answer: Answer) -> None:
    await RecordingFile(tape, []).add("coder", answer)


async def test_played_back_with_its_timing_an_answer_takes_as_long_as_it_took(tmp_path: Path) -> None:
    tape = tmp_path / "chat.jsonl"
    whole = Answer(text="one two  three\n", reasoning="so it is", seconds=3.0)
    await recorded_answer(tape, whole)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    deltas, answer = await ask(ReplayModel(load_recording(tape), "chat", sleep), question("go"))
    assert answer == whole
    assert "".join(delta.text for delta in deltas) == whole.text
    assert "".join(delta.reasoning for delta in deltas) == whole.reasoning
    assert slept == [0.5] * 6


@pytest.mark.parametrize("ending", ["", "?timing=none", "?timing=original"])
async def test_the_name_says_whether_the_timing_is_kept(tmp_path: Path, ending: str) -> None:
    tape = tmp_path / "chat.jsonl"
    await recorded_answer(tape, Answer(text="one two", seconds=0.01))
    async with Models(home(tmp_path), {}) as models:
        deltas, answer = await ask(
            models.open([absolute_model_name(f"replay:{tape}{ending}")]), question("go")
        )
    assert answer.text == "one two"
    assert len(deltas) == (2 if ending.endswith("original") else 1)


async def test_a_timing_that_does_not_exist_is_named(tmp_path: Path) -> None:
    async with Models(home(tmp_path), {}) as models:
        with pytest.raises(BadConfig, match="timing 'fast'"):
            models.open([f"replay:{tmp_path / 'chat.jsonl'}?timing=fast"])


@pytest.mark.parametrize(("called", "form"), [(True, "tools"), (False, "")])
async def test_who_called_tools_when_recorded_gets_them_again(
    tmp_path: Path, called: bool, form: str
) -> None:
    tape = tmp_path / "chat.jsonl"
    calls = (ToolCall(id="1", name="check", arguments="{}"),) if called else ()
    await recorded_answer(tape, Answer(text="so", calls=calls))
    member = RoleSpec(name="coder", role="coder", model=(f"replay:{tape}?timing=none",))
    assert adapt_to_model(member).form == form
    assert adapt_to_model(replace(member, model=("replay:nowhere.jsonl",))).form == ""


async def test_the_answers_are_counted_and_their_words_are_played_back_with_the_time_of_each(
    tmp_path: Path,
) -> None:
    tape = tmp_path / "chat.jsonl"
    file = RecordingFile(tape, [])
    for text in ("one", "two"):
        await file.add("coder", Answer(text=text))
    assert [line.seq for line in load_recording(tape)] == [1, 2]
    assert tape.read_text().count("\n") == 2
    assert [*timed_deltas(Answer(text="a b ", reasoning="c", seconds=6.0))] == [
        (2.0, Delta(reasoning="c")),
        (2.0, Delta(text="a ")),
        (2.0, Delta(text="b ")),
    ]
    assert [*timed_deltas(Answer(text="ab", seconds=6.0))] == [(6.0, Delta(text="ab"))]
    assert [*timed_deltas(Answer(text="", seconds=6.0))] == [(6.0, Delta())]


def test_a_short_word_is_no_secret_and_the_longest_secret_goes_first(tmp_path: Path) -> None:
    file = RecordingFile(tmp_path / "tape", ["secret-1", "secret-1-and-more", "x" * (MIN_SECRET_LENGTH - 1)])
    assert file._secrets == ["secret-1-and-more", "secret-1"]  # pyright: ignore[reportPrivateUsage]  # the order is the point
