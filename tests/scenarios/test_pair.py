"""The coder–runner pair : step plan, code, run, feedback, until the manager says so."""

import json
from pathlib import Path

from cli.commands import SCRIPTS, Septet, envelopes, kinds
from loopback import Quiet, served

PULLS = [
    {"number": 41, "title": "Old", "created_at": "2026-01-02T00:00:00Z"},
    {"number": 42, "title": "Add a clock", "created_at": "2026-03-01T00:00:00Z"},
    {"number": 40, "title": "Older", "created_at": "2025-12-02T00:00:00Z"},
]
RUN = ["run", "newest pull request to pr.txt", "-t", "pair", "-C", "w", "-n", "pull"]
SCRIPT = SCRIPTS / "pull_request.yaml"
CLAIMED = 3


def prepared(tmp_path: Path) -> Path:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "pulls.json").write_text(json.dumps(PULLS))
    return workspace


def history(septet: Septet) -> str:
    """It is kept under Septet's home: the folder held something before."""
    return (septet.home / "keepsakes" / "pull" / "chat_history.txt").read_text()


class Repository(Quiet):
    """The part of a pull-request API that the task needs."""

    def do_GET(self) -> None:  # noqa: N802  the library's own name
        known = self.path == "/repos/septet/septet/pulls?state=all"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps(PULLS).encode() if known else b"{}")


def test_the_newest_pull_request_is_fetched_through_the_allow_list(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(Repository) as place:
        (tmp_path / "w" / "api.txt").write_text(f"http://{place}\n")
        model = f"scripted:{SCRIPTS / 'pull_request_http.yaml'}"
        done = septet(*RUN, "-m", model, "--network", place)
    assert done.returncode == CLAIMED, done.stderr
    assert septet("deliver", "pull").returncode == 0
    assert (tmp_path / "w" / "pr.txt").read_text() == "#42 Add a clock\n"
    assert f"network for programs: only {place}" in done.stderr
    assert "elsewhere: HTTP Error 403: Forbidden" in history(septet)
    assert f"network: only {place}" in septet("show", "pull").stdout


def test_without_the_allow_list_the_same_program_reaches_nothing(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with served(Repository) as place:
        (tmp_path / "w" / "api.txt").write_text(f"http://{place}\n")
        done = septet(*RUN, "-m", f"scripted:{SCRIPTS / 'pull_request_http.yaml'}")
    assert done.returncode != CLAIMED
    assert "Connection refused" in history(septet)


def test_the_newest_pull_request_is_written_and_a_marker_in_the_output_ends_nothing(
    septet: Septet, tmp_path: Path
) -> None:
    workspace = prepared(tmp_path)
    done = septet(*RUN, "-m", f"scripted:{SCRIPT}", "--json")
    assert done.returncode == CLAIMED, done.stderr
    log = done.stdout
    assert log.index("TERMINATE") < log.index("septet.terminated")
    assert kinds(log).count("terminated") == 1
    assert envelopes(log)[-1]["status"] == "claimed"
    assert not (workspace / "pr.txt").exists(), "what is only claimed waits for the person"
    assert septet("deliver", "pull").returncode == 0
    assert (workspace / "pr.txt").read_text() == "#42 Add a clock\n"
    claim = "claimed, not proven: the manager says it is done, nothing was checked"
    listed = septet("list").stdout
    assert claim in septet("show", "pull").stdout
    assert ("claimed, not proven" in listed, "all checks passed" in listed) == (True, False)
    assert kinds(septet("resume", "pull", "--json").stdout) == ["result"], "there is nothing to go on with"
    told = history(septet)
    assert told == septet("export", "pull", "--format", "txt").stdout.rstrip("\n") + "\n\n"
    assert told.index("KeyError: 'id'") < told.index("terminate: pr.txt holds")


def test_the_manager_cannot_end_what_has_not_run_well(septet: Septet, tmp_path: Path) -> None:
    prepared(tmp_path)
    whole = SCRIPT.read_text()
    eager = whole.replace("    next: coder\n", "    terminate: all done\n", 1)
    plan = "- role: coder\n  say: |\n    1. Read"
    insisting = "- role: manager\n  expect: did not succeed\n  say: I insist, it is done.\n"
    (tmp_path / "eager.yaml").write_text(eager.replace(plan, insisting + plan, 1))
    done = septet(*RUN, "-m", "scripted:eager.yaml", "--json")
    assert done.returncode == CLAIMED, done.stderr
    assert '"fallback":true' in done.stdout


def test_the_history_survives_a_kill_as_a_prefix_and_is_completed(septet: Septet, tmp_path: Path) -> None:
    prepared(tmp_path)
    septet.killed(*RUN, "-m", f"scripted:{SCRIPT}", "--json", at="run_finished")
    before = history(septet)
    assert septet("resume", "pull", "-q").returncode == CLAIMED
    after = history(septet)
    assert after.startswith(before)
    assert after.count("terminate: pr.txt holds") == 1
