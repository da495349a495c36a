"""`run` and `resume`: stdout carries the result, exit codes tell how it ended, nothing is lost."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import MORE, PATIENCE, SMALL, Septet, envelopes, kinds


def test_a_scripted_team_builds_until_the_checks_pass(septet: Septet, tmp_path: Path) -> None:
    done = septet("run", "add two numbers", "-m", SMALL, "--yes", "-C", "here", "-n", "adding")
    assert done.returncode == 0, done.stderr
    assert "adding: done; only the coder's own tests show P1" in done.stdout
    assert "✓  P1 add(a, b) gives the sum" in done.stdout
    assert "version 1" in done.stderr
    assert "version 1" not in done.stdout
    program = str(tmp_path / "here" / "add.py")
    assert subprocess.check_output([sys.executable, program, "20", "22"], text=True) == "42\n"


def test_json_is_one_envelope_a_line_and_the_result_last(septet: Septet) -> None:
    done = septet("run", "add", "-m", SMALL, "--yes", "--json", "-n", "adding")
    *events, result = envelopes(done.stdout)
    assert events == envelopes(septet("export", "adding", "--format", "jsonl").stdout)
    assert {event["specversion"] for event in events} == {"1.0"}
    assert kinds(done.stdout)[-2:] == ["chat_ended", "result"]
    assert result["status"] == "done"
    assert result["versions"] == 2


def test_json_of_a_resumed_chat_holds_the_words_that_it_was_resumed_with(septet: Septet) -> None:
    waiting = septet("run", "add", "-m", SMALL, "--json", "-n", "adding")
    resumed = septet("resume", "adding", "sounds good", "--json")
    told = envelopes(waiting.stdout)[:-1] + envelopes(resumed.stdout)[:-1]
    assert told == envelopes(septet("export", "adding", "--format", "jsonl").stdout)


@pytest.mark.torture
def test_a_project_is_begun_resumed_and_left_alone_by_the_same_line(septet: Septet) -> None:
    line = ("--project", "adding", "add two numbers", "-m", SMALL, "--yes", "-q")
    assert septet("--project", "adding").returncode == 2, "there is none to go on with"
    assert septet(*line, "--rounds", "1").returncode == 3
    assert septet(*line).returncode == 0
    before = septet("export", "adding", "--format", "jsonl").stdout
    assert septet(*line).returncode == 0
    assert septet("export", "adding", "--format", "jsonl").stdout == before
    septet("--project", "adding", "also multiply", "-q")
    assert "also multiply" in septet("export", "adding", "--format", "txt").stdout


def test_the_goal_may_come_from_stdin_and_quiet_is_quiet(septet: Septet) -> None:
    done = septet("run", "-", "-m", SMALL, "--yes", "-q", "-n", "adding", stdin="add two numbers\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "goal: add two numbers" in septet("show", "adding").stdout


def test_words_that_are_no_command_are_a_goal(septet: Septet) -> None:
    assert septet("add two numbers", "-m", SMALL, "-n", "adding").returncode == 4, (
        "its plan is to be approved"
    )
    assert "goal: add two numbers" in septet("show", "adding").stdout


def test_a_chat_waits_for_the_person_across_restarts(septet: Septet) -> None:
    waiting = septet("run", "add", "-m", SMALL, "-n", "adding")
    assert waiting.returncode == 4
    assert "septet resume adding 'sounds good'" in waiting.stderr
    assert septet("resume", "adding").returncode == 4
    assert "waits for the person to approve the plan" in septet("list").stdout
    assert septet("resume", "adding", "Sounds good!").returncode == 0


def test_feedback_on_the_plan_goes_to_the_planner(septet: Septet) -> None:
    septet("run", "add", "-m", SMALL, "-n", "adding")
    changed = septet("resume", "adding", "also multiply")
    assert changed.returncode == 4
    assert kinds(septet("export", "adding", "--format", "jsonl").stdout).count("plan_proposed") == 2
    assert "also multiply" in septet("export", "adding", "--format", "txt").stdout


def test_a_bound_stops_by_name_and_resume_gives_more_room(septet: Septet) -> None:
    stopped = septet("run", "add", "-m", SMALL, "--yes", "--rounds", "1", "-n", "adding")
    assert stopped.returncode == 3
    assert "a bound was reached (1 round is used up)" in stopped.stdout
    assert "septet: to go on: septet resume adding" in stopped.stderr
    assert septet("resume", "adding", "--rounds", "1").returncode == 0


def test_a_finished_chat_stays_finished(adding: Septet) -> None:
    before = adding("export", "adding", "--format", "jsonl").stdout
    assert adding("resume", "adding", "-q").returncode == 0
    assert adding("export", "adding", "--format", "jsonl").stdout == before


def test_a_recorded_chat_plays_again(adding: Septet) -> None:
    log = adding("export", "adding", "--format", "jsonl").stdout
    (adding.home.parent / "log.jsonl").write_text(log)
    done = adding("run", "add", "-m", "replay:log.jsonl", "--yes", "-q", "-n", "second")
    assert done.returncode == 0, done.stderr
    assert kinds(log) == kinds(adding("export", "second", "--format", "jsonl").stdout)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_and_leaves(septet: Septet, number: signal.Signals, code: int) -> None:
    process = septet.start("run", "add", "-m", SMALL, "--yes", "--json", "-n", "adding")
    assert process.stdout is not None
    while "run_started" not in process.stdout.readline():
        pass
    process.send_signal(number)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "interrupted and saved: septet resume adding" in complaint
    assert septet("resume", "adding", "-q").returncode == 0


def without_bubblewrap(septet: Septet, **variables: str) -> subprocess.CompletedProcess[str]:
    hide = f"mount --bind /dev/null {shutil.which('bwrap')}"
    run = f"exec {sys.executable} -m septet run add -m {SMALL} --yes -n adding"
    command = ["unshare", "--mount", "sh", "-c", f"{hide} && {run}"]
    environment = {**septet.environment, **variables}
    folder = septet.home.parent
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr:
        pytest.skip("a mount namespace is not permitted here")
    return done


def test_without_the_sandbox_that_was_named_code_is_not_run(septet: Septet) -> None:
    refused = without_bubblewrap(septet, SEPTET_SANDBOX="bubblewrap")
    assert refused.returncode == 6, refused.stderr
    assert "bubblewrap" in refused.stderr
    assert "--unsafe-local" in refused.stderr
    assert not septet.home.exists()


@pytest.mark.torture
def test_without_bubblewrap_namespaces_are_made_by_ourselves(septet: Septet) -> None:
    done = without_bubblewrap(septet)
    assert done.returncode == 0, done.stderr
    assert '"rung":"namespaces"' in septet("export", "adding", "--format", "jsonl").stdout


def test_unsafe_local_is_said_loudly(septet: Septet) -> None:
    done = septet("run", "add", "-m", SMALL, "--yes", "--unsafe-local", "-n", "adding")
    assert done.returncode == 0, done.stderr
    assert "WITHOUT A SANDBOX" in done.stderr
    assert "unsafe" in septet("export", "adding", "--format", "jsonl").stdout


def test_what_the_person_wants_after_the_end_is_done(septet: Septet, tmp_path: Path) -> None:
    assert septet("run", "add", "-m", MORE, "--yes", "-q", "-n", "adding", "-C", "w").returncode == 0
    assert "v1" in septet("resume", "adding", "-q").stdout, "nothing new is wanted"
    more = septet("resume", "adding", "say what the sum is of", "-q")
    assert more.returncode == 0, more.stderr
    assert "✓  W1 say what the sum is of" in more.stdout
    program = str(tmp_path / "w" / "add.py")
    assert subprocess.check_output([sys.executable, program, "2", "3"], text=True) == "2 3 give 5\n"


def test_a_wish_that_nothing_is_done_for_does_not_end_as_done(septet: Septet, tmp_path: Path) -> None:
    script = Path(MORE.removeprefix("scripted:")).read_text()
    first = script.index("- role: coder")
    second = script.index("- role: coder", first + 1)
    (tmp_path / "lazy.yaml").write_text(
        script[:second] + script[first:second].replace("All of it", "It is there")
    )
    begun = ("-m", "scripted:lazy.yaml", "--yes", "-q", "-n", "adding")
    assert septet("run", "add", *begun).returncode == 0
    more = septet("resume", "adding", "say what the sum is of", "-q", "--rounds", "1")
    assert more.returncode == 3, more.stdout
    assert "all checks passed" not in more.stdout
    assert "✗  W1 say what the sum is of" in more.stdout
    assert "W1 is not met (no version since)" in septet("show", "adding").stdout


def test_members_go_by_the_names_that_a_team_file_gives_them(septet: Septet, tmp_path: Path) -> None:
    members = "".join(
        f"- {{role: {role}, name: my-{role}}}\n" for role in ("planner", "coder", "runner", "reviewer")
    )
    (tmp_path / "team.yaml").write_text(f"approve: auto\nmembers:\n{members}")
    done = septet("run", "add", "-t", "team.yaml", "-m", SMALL)
    assert done.returncode == 0, done.stderr
    assert " my-coder  version 2: add.py" in done.stderr
