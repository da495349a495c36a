"""Secrets in repositories: what is masked, how the person opens a file to programs, or says that it is no secret."""

from pathlib import Path

import pytest
from cli.commands import Septet
from msgspec.structs import replace
from scenarios.assistant.scripts import calls, says
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import ACCEPT, Played, call, fill, plan, play, repository, script

from septet.common.secrets import has_scanner
from septet.domain.events import BaseSurveyed, RunFinished
from septet.domain.facts import FactsChange
from septet.domain.teams import TeamSpec
from septet.workspace.facts_file import Memory

pytestmark = pytest.mark.anyio
TOKEN = "xoxb-123456789012-CANARYbCdEfGhIjKlMn"
FILES = {
    "settings.py": f"SLACK = '{TOKEN}'\n",
    "main.py": "print('hi')\n",
    ".gitignore": ".env*\n",
}
PRINTS = "import pathlib\n\nprint('ho', pathlib.Path('.env.test').read_text())\n"


def with_tools(team: TeamSpec) -> TeamSpec:
    return replace(team, members=tuple(replace(one, form="tools") for one in team.members))


def printed(played: Played) -> str:
    return "".join(
        one.result.stdout + one.result.stderr for one in played.events if isinstance(one, RunFinished)
    )


def stored(home: Path) -> bytes:
    files = [path for path in home.rglob("*") if path.is_file() and home / "scratch" not in path.parents]
    return b"".join(path.read_bytes() for path in files)


async def test_a_token_in_a_tracked_file_is_in_no_prompt_whoever_reads_it(tmp_path: Path) -> None:
    repository(tmp_path / "project", FILES)
    reads = calls(
        "coder",
        ("read", {"path": "settings.py"}),
        ("search", {"pattern": "SLACK"}),
        ("outline", {"path": "settings.py"}),
        ("run", {"command": "cat settings.py && python -c 'import settings; print(settings.SLACK[:100])'"}),
    )
    edits = calls("coder", ("edit", {"edits": [{"path": "main.py", "old": "'hi'", "new": "'ho'"}]}))
    first = plan("python main.py", "command python main.py => ho")
    model = script(tmp_path, first, reads, edits, says("coder", "done"), ACCEPT)
    played = await play(tmp_path, model, "iterate", change=with_tools)
    assert "CANARY" not in played.told
    assert b"CANARY" not in stored(tmp_path / "home")
    assert any("looks like a secret (access token)" in reason for reason in played.refusals)
    assert printed(played).count("[secret: access token]") == 2
    assert (tmp_path / "project" / "main.py").read_text() == "print('ho')\n"


@pytest.mark.parametrize("named", [True, False])
async def test_programs_read_a_secret_file_only_where_the_team_names_it(tmp_path: Path, named: bool) -> None:
    project = repository(tmp_path / "project", FILES)
    fill(project, {".env.test": "PASSWORD=CANARY-1-of-mine\n"})
    act = call("write_code", {"path": "main.py", "code": PRINTS})
    model = script(tmp_path, plan("python main.py", "command python main.py => ho"), act, ACCEPT)
    patterns = (".env.*",) if named else ()
    played = await play(
        tmp_path, model, "autocoder", rounds=1, change=lambda team: replace(team, unmask=patterns)
    )
    assert ("[secret: of a file that is not shown]" in printed(played)) is named
    assert ("FileNotFoundError" in printed(played)) is not named
    (base,) = [event for event in played.events if isinstance(event, BaseSurveyed)]
    assert base.unmasked == ((".env.test",) if named else ())
    assert "CANARY-1" not in played.told
    assert b"CANARY-1" not in stored(tmp_path / "home")


async def test_a_file_that_the_person_calls_no_secret_is_shown_edited_and_delivered(tmp_path: Path) -> None:
    fixture = "from main import mark\n\nKEY = 'AKIAIOSFODNN7EXAMPLE'\n\n\ndef test_mark():\n    assert mark(KEY) == 1\n"
    project = repository(
        tmp_path / "project", {"main.py": "def mark(key):\n    return 1\n", "test_main.py": fixture}
    )
    Memory(home_in(tmp_path).facts, project).change(
        FactsChange(add=("not secret: test_*.py",)), "the person, 2026-11-18"
    )
    reads = calls("coder", ("read", {"path": "test_main.py"}))
    edits = [("test_main.py", "== 1", "== 2"), ("main.py", "return 1", "return 2")]
    wishes = [{"path": path, "old": old, "new": new} for path, old, new in edits]
    model = script(
        tmp_path,
        plan("", "tests test_main.py::test_mark"),
        reads,
        {**calls("coder", ("edit", {"edits": wishes})), "expect": "AKIAIOSFODNN7EXAMPLE"},
        says("coder", "done"),
        ACCEPT,
    )
    played = await play(tmp_path, model, "iterate", change=with_tools)
    assert not played.refusals
    assert "== 2" in (project / "test_main.py").read_text()


def test_a_project_does_not_open_its_own_secrets_unless_it_is_trusted(septet: Septet, tmp_path: Path) -> None:
    team = "members: [{role: planner}, {role: coder}, {role: runner}, {role: reviewer}]\nunmask: [.env]\n"
    project = repository(tmp_path / "project", {**FILES, ".septet/team.yaml": team})
    fill(project, {".env": "CANARY-1-of-mine"})
    edit = call("edit_text", {"path": "main.py", "old": "'hi'", "new": "'ho'"})
    line = plan("python main.py", "command python main.py => ho")
    model = script(tmp_path, line, edit, ACCEPT)
    run = (
        "run",
        "g",
        "-t",
        "project/.septet/team.yaml",
        "-C",
        "project",
        "--yes",
        "-m",
        model,
        "--rounds",
        "1",
    )
    refused = septet(*run)
    assert refused.returncode == 5
    assert "may not open its secrets" in refused.stderr
    assert "septet trust" in refused.stderr
    assert septet("list").stdout.strip() in ("", "no chats yet") or "g" not in septet("list", "--json").stdout
    assert septet("trust", "project").returncode == 0
    trusted = septet(*run)
    assert "programs may read .env" in trusted.stderr


def test_doctor_says_what_texts_are_scanned_with(septet: Septet) -> None:
    (line,) = [line for line in septet("doctor").stdout.splitlines() if " secrets " in line]
    assert ("Kingfisher's rules" if has_scanner() else "septet[secrets]") in line
