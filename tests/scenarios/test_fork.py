"""`fork` as a person uses it: the same start, a new branch of history."""

import msgspec
import pytest
from cli.commands import Septet, kinds


def test_a_fork_begins_as_the_other_chat_and_goes_its_own_way(adding: Septet) -> None:
    before = adding("export", "adding", "--format", "jsonl").stdout
    done = adding("fork", "add", "--from", "v1")
    name = done.stdout.strip()
    assert done.returncode == 0, done.stderr
    assert name.startswith("adding-")
    assert f"to go on: septet resume {name}" in done.stderr
    program = adding.home / "work" / name / "add.py"
    assert "return a - b" in program.read_text()
    log = kinds(adding("export", name, "--format", "jsonl").stdout)
    assert log == kinds(before)[: len(log)]
    assert log[-1] == "version_written"
    assert adding("resume", name, "-q").returncode == 0
    assert "return a + b" in program.read_text()
    assert adding("export", "adding", "--format", "jsonl").stdout == before


def test_a_whole_chat_is_forked_and_told_to_programs(adding: Septet) -> None:
    done = msgspec.json.decode(adding("fork", "adding", "-n", "twin", "--json").stdout)
    folder = adding.home / "work" / "twin"
    assert done == {
        "chat": "twin",
        "origin": "adding",
        "version": 2,
        "workspace": str(folder),
        "next": "septet resume twin 'what shall be different'",
    }
    assert "return a + b" in (folder / "add.py").read_text()
    assert "twin: done" in adding("show", "twin").stdout


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["adding", "--from", "v9"], "'adding' has no version 'v9': it has v1 to v2"),
        (["adding", "--from", ""], "'adding' has no version ''"),
        (["nobody"], "there is no chat 'nobody'"),
        (["adding", "-n", "adding"], "there is a chat or a workspace 'adding' already"),
        (["adding", "-n", "../up"], "'../up' is not a valid name for a chat"),
    ],
)
@pytest.mark.torture
def test_what_cannot_be_forked_is_said_in_one_line(adding: Septet, args: list[str], reason: str) -> None:
    refused = adding("fork", *args)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert reason in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert len(adding("list").stdout.splitlines()) == 1


def test_the_workspace_of_a_renamed_chat_is_never_taken(adding: Septet) -> None:
    adding("rename", "adding", "sums")
    refused = adding("fork", "sums", "--from", "v1", "-n", "adding")
    assert refused.returncode == 2
    assert "return a + b" in (adding.home / "work" / "adding" / "add.py").read_text()


def test_a_chat_goes_on_from_an_older_version(adding: Septet) -> None:
    program = adding.home / "work" / "adding" / "add.py"
    refused = adding("resume", "adding", "--from", "v9")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'adding' has no version 'v9': it has v1 to v2" in refused.stderr
    gone_on = adding("resume", "adding", "--from", "v1", "--json")
    told = kinds(gone_on.stdout)
    assert told[:4] == ["snapshot_taken", "decision_recorded", "version_written", "chat_continued"]
    assert told[-3:] == ["turn_opened", "chat_halted", "result"]
    assert "run_finished" in told, "what is brought back is run again"
    assert gone_on.returncode == 5
    assert "the script small has no step" in gone_on.stderr, (
        "its reviewer has nothing to say to a third version"
    )
    assert "return a - b" in program.read_text()
    assert "v1 again, as the person asked" in adding("restore", "adding").stdout
