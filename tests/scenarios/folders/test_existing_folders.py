"""In a folder that holds something already, nothing of the person's is lost, whichever team works there."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cli.commands import Septet
from sampling import sampled
from scenarios.folders.chats import (
    ACCEPT,
    FIXED,
    REVISE,
    Turn,
    call,
    code,
    fill,
    git,
    plan,
    play,
    repository,
    script,
    send,
    undo,
)

from septet.domain.events import Event, ReviewGiven, RunFinished, VersionWritten

pytestmark = pytest.mark.anyio
PRECIOUS = 'def hello():\n    return "precious"\n'
NEW = 'print("hi")\n'
PLAN = plan("python hello.py", "command python hello.py => hi")

SCRIPTS: Mapping[str, Sequence[Turn]] = {
    "iterate": (PLAN, code({"hello.py": NEW}), code({"hello.py": NEW}, expect="precious"), ACCEPT),
    "pair": (
        {"role": "manager", "say": "Greet.\nnext: coder"},
        {"role": "coder", "say": "1. print hi"},
        code({"hello.py": NEW}),
        code({"hello.py": NEW}, expect="precious"),
        {"role": "manager", "say": "terminate: it greets"},
        {"role": "manager", "say": "terminate: it greets"},
    ),
    "assistant": (
        send("greet"),
        call("File", {"file_name": "hello.py", "body": NEW}, role="assistant"),
        call("File", {"file_name": "hello.py", "body": NEW}, expect="precious", role="assistant"),
        {"role": "assistant", "say": "done"},
        {"role": "proxy", "say": "It is done."},
    ),
    "autocoder": (
        PLAN,
        call("write_code", {"path": "hello.py", "code": NEW}, expect="precious"),
        call(
            "create_new_file",
            {
                "path": "test_hello.py",
                "code": "import subprocess, sys\n\n\ndef test_it():\n"
                "    assert subprocess.run([sys.executable, 'hello.py'], check=True).returncode == 0\n",
            },
        ),
        ACCEPT,
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_file_is_replaced_only_after_it_was_shown_and_comes_back(tmp_path: Path, name: str) -> None:
    project = fill(tmp_path / "project", {"hello.py": PRECIOUS, "notes/todo.txt": "buy milk"})
    (project / "hello.py").chmod(0o755)
    played = await play(tmp_path, script(tmp_path, *SCRIPTS[name]), name, rounds=12)
    if name != "autocoder":  # which is shown all texts beforehand
        assert "hello.py" in played.refusals[0]
        assert "precious" in played.refusals[0]
    assert (project / "hello.py").read_text() == NEW
    assert (project / "hello.py").stat().st_mode & 0o777 == 0o755
    await undo(tmp_path)
    assert (project / "hello.py").read_text() == PRECIOUS
    assert (project / "hello.py").stat().st_mode & 0o777 == 0o755
    assert (project / "notes" / "todo.txt").read_text() == "buy milk"


def test_the_folder_is_the_persons_until_delivery_and_again_after_undo(
    septet: Septet, tmp_path: Path
) -> None:
    repository(tmp_path / "project", {"hello.py": "committed\n"})
    fill(tmp_path / "project", {"hello.py": PRECIOUS})
    model = script(tmp_path, *SCRIPTS["iterate"], *SCRIPTS["iterate"][1:])
    ran = septet("run", "greet", "-n", "greeter", "-C", "project", "--yes", "-m", model, "--rounds", "2")
    assert "septet deliver greeter" in ran.stderr
    assert (tmp_path / "project" / "hello.py").read_text() == PRECIOUS
    assert '+print("hi")\n' in septet("diff", "greeter").stdout
    assert septet("try", "greeter").stdout == "hi\n"
    assert septet("deliver", "greeter").returncode == 0
    assert (tmp_path / "project" / "hello.py").read_text() == NEW
    assert '+print("hi")\n' in septet("diff", "greeter").stdout
    back = septet("undo", "greeter")
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "project" / "hello.py").read_text() == PRECIOUS
    assert septet("undo", "greeter").returncode == 2


async def test_a_file_changed_since_it_was_shown_is_shown_again(tmp_path: Path) -> None:
    project = fill(tmp_path / "project", {"hello.py": PRECIOUS})
    turns = [PLAN, code({"hello.py": NEW}), code({"hello.py": NEW}), code({"hello.py": NEW}, expect="newer")]
    model = script(tmp_path, *turns, ACCEPT)
    count = 0

    def edit(event: Event) -> None:
        nonlocal count
        count += type(event).__name__ == "ReplyRefused"
        if count == 1:
            (project / "hello.py").write_text(PRECIOUS + "# newer\n")

    played = await play(tmp_path, model, "iterate", edit)
    assert len(played.refusals) == 2
    assert (project / "hello.py").read_text() == NEW


@pytest.mark.parametrize("name", ["deploy.pem", "data.bin", "ignored.txt", "long.txt"])
@pytest.mark.torture
async def test_what_may_not_be_shown_is_only_refused(tmp_path: Path, name: str) -> None:
    project = repository(tmp_path / "project", {".gitignore": "ignored.txt\n"})
    (project / name).write_bytes(b"precious\0" if name == "data.bin" else b"precious " * 20_000)
    before = (project / name).read_bytes()
    model = script(tmp_path, PLAN, code({name: "x\n"}), code({"hello.py": NEW}), ACCEPT)
    played = await play(tmp_path, model, "iterate", rounds=2)
    assert name in played.refusals[0]
    assert "precious" not in played.told
    assert (project / name).read_bytes() == before


async def test_a_data_file_that_runs_change_is_never_swept_away(tmp_path: Path) -> None:
    """It was there before: whatever a run does to its copy, the person's own is not touched."""
    project = repository(tmp_path / "project", {".gitignore": "dev.db\n", "dev.db": "row\n"})
    program = "open('dev.db', 'a').write('more\\n')\nopen('out.txt', 'w').write('x')\nprint('{}')\n"
    model = script(
        tmp_path,
        plan("python add.py", "command python add.py => good"),
        code({"add.py": program.format("bad")}),
        REVISE,
        code({"add.py": "print('good')\n"}, say=FIXED),
        ACCEPT,
    )
    await play(tmp_path, model, "iterate", rounds=2)
    assert (project / "dev.db").read_text() == "row\n"
    assert not (project / "out.txt").exists()  # a run of version 1 created it


TWO = {"add.py": "def add(a, b):\n    return a - b\n", "say.py": "print('bad')\n"}


def two_versions(folder: Path, *, expect: str = "", times: int = 3) -> str:
    again = code({"say.py": "print('good')\n"}, say=FIXED, expect=expect)
    return script(
        folder,
        plan("python say.py", "command python say.py => good"),
        code(TWO),
        *[REVISE, again] * times,
        ACCEPT,
    )


@pytest.mark.parametrize("leave", [True, False])
async def test_an_edit_by_hand_stays_and_is_shown_to_the_coder(tmp_path: Path, leave: bool) -> None:
    """Between turns, or before the chat is resumed."""
    mended = "def add(a, b):\n    return a + b  # by hand\n"
    project = tmp_path / "project"

    def edit(event: Event) -> bool:
        if isinstance(event, ReviewGiven) and "by hand" not in (project / "add.py").read_text():
            (project / "add.py").write_text(mended)
            return leave
        return False

    model = two_versions(tmp_path, expect="by hand")
    played = await play(tmp_path, model, "iterate", edit)
    if leave:
        played = await play(tmp_path, model, "iterate")
    assert [version.number for version in played.found] == [2]
    assert (project / "add.py").read_text() == mended
    assert (project / "say.py").read_text() == "print('good')\n"


LATER: Mapping[str, Sequence[Turn]] = {
    "pair": (
        {"role": "manager", "say": "Greet.\nnext: coder"},
        {"role": "coder", "say": "1. print hi"},
        code({"main.py": "print('one')\n"}),
        *[{"role": "manager", "say": "More.\nnext: coder"}] * 2,
        code({"other.py": "print('two')\n"}, expect="by hand"),
    ),
    "assistant": (
        send("write"),
        call("File", {"file_name": "main.py", "body": 'print("one")\n'}, role="assistant"),
        call("ExecutePyFile", {"file_name": "main.py"}, role="assistant"),
        call("File", {"file_name": "other.py", "body": 'print("two")\n'}, expect="by hand", role="assistant"),
        {"role": "assistant", "say": "done"},
        {"role": "proxy", "say": "It is done."},
    ),
    "autocoder": (
        plan("python main.py", "command python main.py => two"),
        call("create", {"code": 'print("one")\n'}),
        call("create_new_file", {"path": "other.py", "code": 'print("two")\n'}, expect="by hand"),
    ),
}


@pytest.mark.parametrize("name", LATER)
@pytest.mark.torture
async def test_an_edit_by_hand_is_shown_to_every_kind_of_coder(tmp_path: Path, name: str) -> None:
    project = tmp_path / "project"
    mine = 'print("two")  # by hand\n'

    def edit(event: Event) -> None:
        if isinstance(event, RunFinished):
            (project / "main.py").write_text(mine)

    played = await play(tmp_path, script(tmp_path, *LATER[name]), name, edit, rounds=14)
    assert (project / "main.py").read_text() == mine
    assert (project / "other.py").read_text() == 'print("two")\n'.replace('"', "'" if name == "pair" else '"')
    assert len(played.found) == 1


async def test_an_edit_of_the_file_that_the_coder_sends_wins(tmp_path: Path) -> None:
    project = tmp_path / "project"
    mine = "print('good')  # mine\n"

    def edit(event: Event) -> None:
        newest = isinstance(event, VersionWritten) and not event.found and event.number == 2
        if newest:  # the coder's answer is there, and not yet on disk
            (project / "say.py").write_text(mine)

    played = await play(tmp_path, two_versions(tmp_path, times=1), "iterate", edit)
    assert (project / "say.py").read_text() == mine
    assert [version.number for version in played.found] == [3]


async def test_a_file_that_the_person_deletes_is_not_brought_back(tmp_path: Path) -> None:
    def delete(event: Event) -> None:
        if isinstance(event, ReviewGiven):
            (tmp_path / "project" / "add.py").unlink(missing_ok=True)

    played = await play(tmp_path, two_versions(tmp_path, times=1), "iterate", delete)
    assert [[file.path for file in version.files] for version in played.found] == [["say.py"]]
    assert not (tmp_path / "project" / "add.py").exists()


async def test_a_folder_that_is_gone_is_filled_again(tmp_path: Path) -> None:
    model = two_versions(tmp_path, times=1)
    await play(tmp_path, model, "iterate", lambda event: isinstance(event, ReviewGiven))
    shutil.rmtree(tmp_path / "project")
    played = await play(tmp_path, model, "iterate")
    assert played.found == []
    assert (tmp_path / "project" / "add.py").read_text() == TWO["add.py"]


async def test_what_a_run_did_to_a_file_of_the_version_is_no_edit_by_hand(tmp_path: Path) -> None:
    counting = "n = int(open('n.txt').read())\nopen('n.txt', 'w').write(str(n + 1))\nprint('{}')\n"
    model = script(
        tmp_path,
        plan("python add.py", "command python add.py => good"),
        code({"add.py": counting.format("bad"), "n.txt": "0\n"}),
        REVISE,
        code({"add.py": counting.format("good")}, say=FIXED),
        ACCEPT,
    )
    played = await play(tmp_path, model, "iterate", rounds=2)
    assert played.found == []
    run = next(event for event in reversed(played.events) if isinstance(event, RunFinished))
    assert run.result.succeeded


def test_keepsakes_stay_out_of_repositories_and_folders_in_use(septet: Septet, tmp_path: Path) -> None:
    repository(tmp_path / "repo", {"README": "mine\n"})
    model = script(tmp_path, PLAN, code({"hello.py": NEW}), ACCEPT)
    for folder in ("repo", "repo/new"):
        done = septet("run", "greet", "-C", folder, "-n", folder[-3:], "--yes", "-m", model, "--rounds", "1")
        septet("deliver", folder[-3:])
        kept = tmp_path / "home" / "keepsakes" / folder[-3:]
        assert str(kept) in done.stderr
        assert (kept / "script_v1.py").read_text() == NEW
        assert (kept / "MasterPlan.txt").exists()
    assert git(tmp_path / "repo", "status", "--porcelain", "-uall") == "?? hello.py\n?? new/hello.py\n"
    assert septet("rename", "new", "newer").returncode == 0
    assert (tmp_path / "home" / "keepsakes" / "newer" / "script_v1.py").exists()
    assert septet("rm", "newer", "--yes").returncode == 0
    assert not (tmp_path / "home" / "keepsakes" / "newer").exists()


async def test_only_the_edit_changes(tmp_path: Path) -> None:
    """No reformatting of what the team did not write, and the file stays executable."""
    ugly = "import sys,os\nx = {  'a':1 }\ndef f( a ):\n  return 'hi'\nprint(f(1))\n"
    project = fill(tmp_path / "project", {"main.py": ugly})
    (project / "main.py").chmod(0o755)
    model = script(
        tmp_path,
        plan("python main.py", "command python main.py => ho"),
        call("edit_text", {"path": "main.py", "old": "'hi'", "new": "'ho'"}),
        ACCEPT,
    )
    await play(tmp_path, model, "autocoder", rounds=1)
    assert (project / "main.py").read_text() == ugly.replace("'hi'", "'ho'")
    assert (project / "main.py").stat().st_mode & 0o777 == 0o755


async def test_main_can_be_deleted_where_another_file_is_run(tmp_path: Path) -> None:
    project = fill(tmp_path / "project", {"main.py": "old\n", "app.py": "print('hi')\n"})
    check = "command python app.py => hi"
    model = script(
        tmp_path, plan("python app.py", check), call("delete_file", {"path": "main.py"}), ACCEPT, ACCEPT
    )
    await play(tmp_path, model, "autocoder", rounds=1)
    assert not (project / "main.py").exists()


LONG = f"{'n' * 300}.py"


@pytest.mark.parametrize("name", ["iterate", "pair", "assistant", "autocoder"])
@pytest.mark.parametrize("path", sampled(["linked/a.py", LONG, "taken/a.py", "folder.py"], every=4))
async def test_a_path_that_cannot_be_written_is_refused_to_the_coder(
    tmp_path: Path, name: str, path: str
) -> None:
    elsewhere = fill(tmp_path / "elsewhere", {"keep.txt": "x"})
    project = fill(tmp_path / "project", {"taken": "a file", "folder.py/inside.txt": "x"})
    (project / "linked").symlink_to(elsewhere)
    wished = {
        "iterate": (PLAN, code({path: NEW}), code({"hello.py": NEW}), ACCEPT),
        "pair": (
            {"role": "manager", "say": "Greet.\nnext: coder"},
            {"role": "coder", "say": "1. print hi"},
            code({path: NEW}),
            code({"hello.py": NEW}),
            {"role": "manager", "say": "terminate: it greets"},
            {"role": "manager", "say": "terminate: it greets"},
        ),
        "assistant": (
            send("greet"),
            call("File", {"file_name": path, "body": NEW}, role="assistant"),
            call("File", {"file_name": "hello.py", "body": NEW}, role="assistant"),
            {"role": "assistant", "say": "done"},
            {"role": "proxy", "say": "It is done."},
        ),
        "autocoder": (
            PLAN,
            call("write_code", {"path": path, "code": NEW}),
            call("write_code", {"path": "hello.py", "code": NEW}),
            ACCEPT,
        ),
    }[name]
    played = await play(tmp_path, script(tmp_path, *wished), name, rounds=12 if name != "autocoder" else 2)
    assert path[:40] in played.refusals[0]
    assert (project / "hello.py").read_text() == NEW
    assert sorted(one.name for one in elsewhere.iterdir()) == ["keep.txt"]


async def test_the_assistant_runs_and_edits_scripts_of_the_person(tmp_path: Path) -> None:
    project = fill(tmp_path / "project", {"mine.py": "x = {  'a': 41 }\nprint('was', x['a'])\n"})
    model = script(
        tmp_path,
        send("mend it"),
        call("ExecutePyFile", {"file_name": "mine.py"}, role="assistant"),
        call("File", {"file_name": "mine.py"}, role="assistant", expect="was 41"),
        call(
            "File", {"file_name": "mine.py", "old": "41", "new": "42"}, role="assistant", expect="x = {  'a'"
        ),
        call("ExecutePyFile", {"file_name": "mine.py"}, role="assistant"),
        {"role": "assistant", "say": "it says 42", "expect": "was 42"},
        {"role": "proxy", "say": "It says 42 now."},
    )
    played = await play(tmp_path, model, "assistant")
    assert played.ended.reason == "answered"
    assert (project / "mine.py").read_text() == "x = {  'a': 42 }\nprint('was', x['a'])\n"
    await undo(tmp_path)
    assert "41" in (project / "mine.py").read_text()
