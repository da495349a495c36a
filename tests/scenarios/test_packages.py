"""Packages in a chat: off by default, asked for, or installed by themselves; always in the log, never with network."""

from pathlib import Path

import pytest
from cli.commands import SCRIPTS, Septet, kinds
from sandboxes.indexes import index
from scenarios.folders.chats import ACCEPT, code, repository, script

RUN = ["run", "print a smile", "-t", "pair", "-C", "w", "-n", "smile"]
MODEL = ["-m", f"scripted:{SCRIPTS / 'emoji.yaml'}"]
STEPS = ["packages_wanted", "packages_decided", "packages_installed", "run_started", "run_finished"]


@pytest.fixture
def indexed(septet: Septet, tmp_path: Path):
    with index(tmp_path / "index", "emoji") as place:
        septet.environment["UV_DEFAULT_INDEX"] = f"http://{place}/simple"
        yield septet


def steps(log: str) -> list[str]:
    return [kind for kind in kinds(log) if kind in STEPS]


def test_what_is_missing_is_installed_and_recorded_before_the_run(indexed: Septet) -> None:
    done = indexed(*RUN, *MODEL, "--packages", "auto", "--json")
    assert done.returncode == 3, done.stderr
    assert steps(done.stdout) == STEPS
    assert "installed emoji" in done.stderr
    assert "installed emoji" in indexed("export", "smile", "--format", "txt").stdout


def test_by_default_nothing_is_installed(indexed: Septet) -> None:
    done = indexed(*RUN, *MODEL, "--json")
    assert done.returncode != 0
    assert steps(done.stdout) == ["run_started", "run_finished"]
    assert "No module named 'emoji'" in done.stdout


def test_the_person_is_waited_for_and_may_say_yes_later(indexed: Septet) -> None:
    waiting = indexed(*RUN, *MODEL, "--packages", "ask")
    assert waiting.returncode == 4
    assert "septet resume smile 'yes'" in waiting.stderr
    assert indexed("resume", "smile").returncode == 4
    exactly = waiting.stderr.split()[-1]
    altered = indexed("resume", "smile", "yes", "--action", exactly[::-1])
    assert (altered.returncode, "asks something else by now" in altered.stderr) == (4, True), altered.stderr
    done = indexed("resume", "smile", "yes", "--action", exactly, "--json")
    assert done.returncode == 3, done.stderr
    assert steps(done.stdout) == STEPS[1:]


def test_a_no_is_kept_and_the_program_runs_without(indexed: Septet) -> None:
    indexed(*RUN, *MODEL, "--packages", "ask")
    done = indexed("resume", "smile", "no", "--json")
    assert steps(done.stdout) == [STEPS[1], *STEPS[3:]]
    assert "No module named 'emoji'" in done.stdout


def test_a_team_file_may_say_it(indexed: Septet, tmp_path: Path) -> None:
    members = "".join(f"- role: {role}\n" for role in ("manager", "coder", "runner"))
    (tmp_path / "team.yaml").write_text(f"floor: pair\npackages: auto\nnetwork: off\nmembers:\n{members}")
    done = indexed("run", "print a smile", "-t", "team.yaml", "-C", "w", "-n", "smile", *MODEL)
    assert done.returncode == 3, done.stderr


def test_exec_installs_for_its_folder(indexed: Septet, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "main.py").write_text("import emoji\nprint(emoji.smile)")
    refused = indexed("exec", "-C", "w", "--packages", "ask", "main.py")
    assert (refused.returncode, "pass --packages auto" in refused.stderr) == (4, True)
    done = indexed("exec", "-C", "w", "--packages", "auto", "main.py")
    assert (done.returncode, done.stdout) == (0, ":)\n"), done.stderr
    again = indexed("exec", "-C", "w", "main.py")
    assert (again.returncode, again.stdout, again.stderr) == (0, ":)\n", "")


PROJECT = {
    "calc.py": "import emoji\n\n\ndef smile():\n    return emoji.smile[::-1]\n",
    "tests/test_calc.py": "from calc import smile\n\n\ndef test_smile():\n    assert smile() == ':)'\n",
    "pyproject.toml": '[project]\nname = "calc"\ndependencies = ["emoji >= 9", "other @ https://example.org/x"]\n',
}


def test_a_repository_without_an_environment_gets_what_it_says_that_it_needs(
    indexed: Septet, tmp_path: Path
) -> None:
    """Before its own tests run for the first time: else nothing would be known of them."""
    repository(tmp_path / "project", PROJECT)
    mended = {"calc.py": PROJECT["calc.py"].replace("[::-1]", "")}
    model = script(tmp_path, code(mended), code(mended), ACCEPT)
    goal = "tests/test_calc.py::test_smile fails, fix it"
    words = ["run", goal, "-C", "project", "-n", "c", "-m", model, "--yes", "--packages", "auto", "--json"]
    done = indexed(*words)
    assert done.returncode == 0, done.stderr
    assert steps(done.stdout)[:5] == STEPS
    assert "installed emoji>=9" in done.stderr
