"""`restore`, `rename`, `rm`, `backup` and `gc` as a person uses them."""

from pathlib import Path

import msgspec
import pytest
from cli.commands import SMALL, Septet, envelopes
from cli.terminals import needs_terminal, on_terminal
from scenarios.autocoder.hello import CASES, fill, write_script


def test_an_old_version_comes_back_and_can_be_taken_back(adding: Septet) -> None:
    program = adding.home / "work" / "adding" / "add.py"
    newest = program.read_text()
    done = adding("restore", "adding", "v1")
    assert done.returncode == 0, done.stderr
    assert "return a - b" in program.read_text()
    assert "septet restore adding s1 undoes this" in done.stdout
    assert adding("restore", "adding", "s1").returncode == 0
    assert program.read_text() == newest


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("v9", "has no version"),
        ("s9", "has no snapshot"),
        ("x", "has no version"),
        ("", "has no version"),
        ("s" + "9" * 5_000, "has no version"),
    ],
)
def test_a_point_that_is_not_there_is_named(adding: Septet, point: str, reason: str) -> None:
    refused = adding("restore", "adding", point)
    assert refused.returncode == 2
    assert reason in refused.stderr
    assert len(refused.stderr) < 200


@pytest.mark.torture
def test_what_an_autocoder_delivered_is_taken_back(septet: Septet, tmp_path: Path) -> None:
    case = CASES["wrong code"]
    project = fill(tmp_path / "project", case.files)
    (project / "empty").mkdir()
    (project / "picture.bin").write_bytes(bytes(range(256)))
    (project / "link").symlink_to("main.py")
    model = write_script(tmp_path / "script.yaml", case.steps)
    done = septet("run", "greet", "-t", "autocoder", "-m", model, "-C", str(project), "-q", "-n", "hello")
    assert done.returncode == 0, done.stderr
    assert (project / "main.py").read_text() != case.files["main.py"]
    refused = septet("restore", "hello", "--yes")
    assert (refused.returncode, "septet undo hello" in refused.stderr) == (2, True)
    assert septet("undo", "hello").returncode == 0
    assert (project / "main.py").read_text() == case.files["main.py"]
    assert (project / "empty").is_dir()
    assert (project / "picture.bin").read_bytes() == bytes(range(256))
    assert str((project / "link").readlink()) == "main.py"


def test_a_chat_gets_another_name(adding: Septet) -> None:
    assert adding("rename", "adding", "sums").returncode == 0
    assert "sums: done" in adding("show", "sums").stdout
    assert adding("show", "adding").returncode == 2
    assert adding("rename", "sums", "../up").returncode == 2
    assert adding("run", "add", "-m", SMALL, "-q", "-n", "other").returncode == 4
    taken = adding("rename", "other", "sums")
    assert taken.returncode == 75
    assert "exists already" in taken.stderr


@pytest.mark.torture
def test_a_chat_is_deleted_only_when_that_is_sure(adding: Septet) -> None:
    asked = adding("rm", "adding")
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    assert adding("rm", "adding", "--yes").returncode == 0
    assert adding("list").stdout == ""
    assert not (adding.home / "work" / "adding").exists()
    assert adding("run", "add", "-m", SMALL, "--yes", "-q", "-n", "mine", "-C", "mine").returncode == 0
    assert "is yours and stays" in adding("rm", "mine", "--yes").stdout
    assert (adding.home.parent / "mine" / "add.py").exists()


def test_points_are_listed_and_the_one_before_the_last_act_is_offered(adding: Septet) -> None:
    program = adding.home / "work" / "adding" / "add.py"
    listed = adding("restore", "adding")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["v1", "v2"]
    assert "return a + b" in program.read_text(), "nobody was asked, so nothing happens"
    points = envelopes(adding("restore", "adding", "--json").stdout)
    assert [(point["point"], point["files"]) for point in points] == [("v1", 2), ("v2", 2)]
    (done,) = envelopes(adding("restore", "adding", "--yes", "--json").stdout)
    assert done == {"chat": "adding", "point": "v1", "undo": "s1"}
    assert "return a - b" in program.read_text()


def test_nothing_before_an_act_is_said(septet: Septet) -> None:
    assert septet("run", "add", "-m", SMALL, "-q", "-n", "waiting").returncode == 4
    assert septet("restore", "waiting").stdout == ""
    refused = septet("restore", "waiting", "--yes")
    assert refused.returncode == 2
    assert "has no point before a change" in refused.stderr


@needs_terminal
@pytest.mark.parametrize(("answer", "text"), [("n", "return a + b"), ("y", "return a - b")])
def test_on_a_terminal_the_person_confirms(adding: Septet, answer: str, text: str) -> None:
    with on_terminal(adding, "restore", "adding") as terminal:
        terminal.wait_for("bring adding back to v1, before the last change?")
        terminal.type(answer)
        assert "exit code 0" in terminal.wait_for("exit code")
    assert text in (adding.home / "work" / "adding" / "add.py").read_text()


def contents(septet: Septet) -> set[str]:
    return {path.parent.name + path.name for path in (septet.home / "blobs").glob("??/*")}


@pytest.mark.torture
def test_a_deleted_chat_frees_what_only_it_kept(adding: Septet) -> None:
    adding("run", "add", "-m", SMALL, "--yes", "-q", "-n", "twin")
    shared = contents(adding)
    fill(adding.home.parent / "project", {**CASES["finished"].files, "picture.bin": "only in a snapshot"})
    model = write_script(adding.home.parent / "script.yaml", ())
    assert (
        adding("run", "g", "-t", "autocoder", "-m", model, "-C", "project", "-q", "-n", "g").returncode == 0
    )
    everything = contents(adding)
    assert shared < everything
    assert "0 bytes of contents freed" in adding("rm", "adding", "--yes").stdout
    assert contents(adding) == everything, "the twin needs them, and so does the snapshot"
    assert adding("restore", "twin", "v1").returncode == 0
    assert " bytes of contents freed" in adding("rm", "g", "--yes").stdout
    assert contents(adding) >= shared
    assert adding("restore", "twin", "v2").returncode == 0
    adding("rm", "twin", "--yes")
    assert contents(adding) == set()


def test_a_backup_brings_all_chats_back_into_another_home(adding: Septet, tmp_path: Path) -> None:
    file = str(tmp_path / "backup.zip")
    made = adding("backup", file)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("1 chats (")
    assert "exists already" in adding("backup", file).stderr
    other = Septet(tmp_path / "other" / "home")
    other.home.parent.mkdir()
    assert other("backup", file, "--restore", "--json").returncode == 0
    assert other("list", "--json").stdout == adding("list", "--json").stdout
    assert (
        other("export", "adding", "--format", "jsonl").stdout
        == adding("export", "adding", "--format", "jsonl").stdout
    )
    assert contents(other) == contents(adding)
    assert "exists already" in other("backup", file, "--restore").stderr


def test_unused_contents_are_freed_and_sizes_are_told(adding: Septet) -> None:
    unused = adding.home / "blobs" / "ab" / ("c" * 62)
    unused.parent.mkdir(exist_ok=True)
    unused.write_bytes(b"x" * 3_000_000)
    before = contents(adding)
    told = adding("gc")
    assert told.returncode == 0, told.stderr
    assert "(2.9 MiB freed)" in told.stdout
    assert before - contents(adding) == {"ab" + "c" * 62}
    sizes = {
        space["what"]: space for space in map(msgspec.json.decode, adding("gc", "--json").stdout.splitlines())
    }
    assert sizes["log"]["size"] >= 4096
    assert sizes["contents"] == {
        "what": "contents",
        "folder": str(adding.home / "blobs"),
        "size": sum(path.stat().st_size for path in (adding.home / "blobs").glob("??/*")),
        "freed": 0,
    }
