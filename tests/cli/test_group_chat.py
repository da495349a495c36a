"""The group chat on one machine, as a person runs it."""

from functools import partial
from pathlib import Path

import msgspec
import pytest
from anyio import to_thread
from cli.commands import SCRIPTS, Septet, envelopes, kinds

from septet.testing.server import serving

TALK = f"scripted:{SCRIPTS / 'talk.yaml'}"


def test_writer_and_editor_speak_in_turn_and_stop_at_max_rounds(septet: Septet) -> None:
    ended = septet(
        "run", "a poem", "-t", str(SCRIPTS / "group_chat.yaml"), "-m", TALK, "--json", "-n", "poem"
    )

    assert ended.returncode == 0, ended.stderr
    assert kinds(ended.stdout).count("turn_opened") == 3
    said = [one for one in envelopes(ended.stdout) if one["type"] == "septet.model_answered"]
    assert [one["subject"] for one in said] == ["writer", "editor", "writer"]


def test_the_result_is_the_text_and_the_history_is_kept(septet: Septet, tmp_path: Path) -> None:
    ended = septet(
        "run", "a poem", "-t", "writer-editor", "-m", TALK, "-C", str(tmp_path / "w"), "--rounds", "4"
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "Sentence 2 of the poem.\n"
    assert "Feedback 2." in (tmp_path / "w" / "chat_history.txt").read_text()
    assert "rounds over (all 4 rounds were spoken)" in septet("list").stdout


@pytest.mark.anyio
async def test_the_files_client_opens_the_model_and_goes_on_opening_it(
    septet: Septet, tmp_path: Path
) -> None:
    async with serving(key="sk-of-the-file") as server:
        client = {
            "model": "m",
            "base_url": server.url,
            "api_key": "sk-of-the-file",
            "temperature": 0.25,
            "max_tokens": 77,
            "timeout": 50,
        }
        (tmp_path / "config.yaml").write_bytes(b"client_config: " + msgspec.json.encode(client))
        run = partial(septet, "run", "a poem", "-t", "config.yaml", "--rounds", "1", "-n", "poem", "-q")
        ended = await to_thread.run_sync(run)
        assert ended.returncode == 0, ended.stderr
        again = await to_thread.run_sync(partial(septet, "resume", "poem", "longer", "-q", "--rounds", "1"))
        assert again.returncode == 0, again.stderr
    asked = [msgspec.json.decode(seen.body, type=dict[str, object]) for seen in server.seen]
    assert [(one["temperature"], one["max_tokens"]) for one in asked] == [(0.25, 77)] * 2
    assert "sk-of-the-file" not in septet("export", "poem", "--format", "jsonl").stdout


def test_a_model_that_is_named_wins_over_the_files(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("client_config: {model: m, api_key: k}\n")
    ended = septet("run", "a poem", "-t", "config.yaml", "-m", TALK, "--rounds", "1", "-q")
    assert ended.returncode == 0, ended.stderr


def test_a_talk_of_one_round_says_nothing_of_checks(septet: Septet) -> None:
    ended = septet("run", "a poem", "-t", "writer-editor", "-m", TALK, "--rounds", "1", "--json")
    assert ended.returncode == 0, ended.stderr
    assert envelopes(ended.stdout)[-1]["status"] == "rounds"
    listed = septet("list").stdout
    assert "rounds over (the one round was spoken)" in listed
    assert "checks" not in listed
