"""The group chat on one machine, as a person runs it."""

from pathlib import Path

from cli.commands import SCRIPTS, Septet, envelopes, kinds

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
    assert "done, all 4 rounds were spoken" in septet("list").stdout
