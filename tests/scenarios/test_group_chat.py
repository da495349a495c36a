"""The group chat on one machine, as a person runs it."""

from functools import partial
from pathlib import Path

import msgspec
import pytest
from anyio import to_thread
from cli.commands import SCRIPTS, Septet, envelopes, kinds

from septet.testing.server import serve_mock

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
    async with serve_mock(key="sk-of-the-file") as server:
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


GRAPH = """
floor: group_chat
budget: {rounds: 20}
members:
- {role: admin, name: Boss, next: [Ann, Cody]}
- {role: writer, name: Ann, instructions: You say what it shall do.}
- {role: coder, name: Cody, next: [{to: runner, when: unrun}, {to: Boss, when: nothing to run}]}
- {role: runner, next: [{to: Cody, when: failed}, {to: Boss, when: succeeded}]}
- {role: user_proxy}
"""
WORDS = r"""
turns:
- {role: Boss, say: "Say what it shall do.\nnext: Zoe", expect: "- Ann, the writer: You say what it shall do."}
- {role: Boss, say: "Ann first.\nnext: ann", expect: "'Zoe' may not speak now, only Ann or Cody"}
- {role: Ann, say: It prints 42., expect: "Boss: Ann first."}
- {role: Boss, say: "next: Cody", expect: "Ann: It prints 42."}
- {role: Cody, say: "What shall it print, again?"}
- {role: Boss, say: "42.\nnext: Cody", expect: "Cody: What shall it print, again?"}
- {role: Cody, files: {main.py: "print(6 * x)\n"}}
- {role: Cody, files: {main.py: "print(6 * 7)\n"}, expect: "NameError"}
- {role: Boss, say: "terminate: it prints 42", expect: "runner: "}
"""


def test_a_group_chat_of_ones_own_follows_its_graph_and_runs_its_code(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "team.yaml").write_text(GRAPH)
    (tmp_path / "words.yaml").write_text(WORDS)
    run = ["run", "a program", "-t", "team.yaml", "-m", "scripted:words.yaml", "--json"]
    ended = septet(*run, "-n", "club", "-C", "w")
    assert ended.returncode == 3, ended.stderr
    told = envelopes(ended.stdout)
    opened = [one["data"] for one in told if one["type"] == "septet.turn_opened"]
    order = [msgspec.convert(one, dict[str, str])["speaker"] for one in opened]
    assert " ".join(order) == "Boss Boss Ann Boss Cody Boss Cody runner Cody runner Boss"
    assert told[-1]["status"] == "claimed"
    assert told[-1]["detail"] == "it prints 42"
    assert (tmp_path / "w" / "main.py").read_text() == "print(6 * 7)\n"
