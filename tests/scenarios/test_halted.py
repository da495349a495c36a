"""What stopped a chat is said to whoever looks later: in the log, by `show` and `list`, as the result of `--json`."""

from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread
from cli.commands import SMALL, Septet, envelopes, kinds

from septet.testing.server import serve_mock

pytestmark = pytest.mark.anyio


@pytest.mark.torture
async def test_a_refused_key_is_in_the_log_and_in_show_and_list(septet: Septet, tmp_path: Path) -> None:
    roles = {"planner": SMALL, "coder": "openai/m", "reviewer": SMALL}
    members = "".join(f"- {{role: {role}, model: '{model}'}}\n" for role, model in roles.items())
    (tmp_path / "t.yaml").write_text(f"members:\n{members}- {{role: runner}}\n")
    async with serve_mock(key="another") as server:
        keyed = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-mine-4711"}
        run = partial(septet, "run", "add", "-t", "t.yaml", "--yes", "-q", "-n", "adding", environment=keyed)
        failed = await to_thread.run_sync(run)
    assert failed.returncode == 5
    assert "401" in failed.stderr or "key" in failed.stderr
    (reason,) = failed.stderr.removeprefix("septet: ").splitlines()
    cause = reason.partition(":")[0]
    log = septet("export", "adding", "--format", "jsonl").stdout
    assert kinds(log)[-1] == "chat_halted"
    assert cause in log
    assert "sk-mine-4711" not in log
    shown = septet("show", "adding").stdout
    assert reason in shown
    assert "septet resume adding" in shown
    assert f"error: {cause}"[:30] in septet("list").stdout
    (listed,) = envelopes(septet("list", "--json").stdout)
    assert listed["status"] == "unfinished"
    assert listed["detail"] == reason


@pytest.mark.torture
def test_a_chat_that_goes_on_again_is_no_longer_halted(septet: Septet, tmp_path: Path) -> None:
    whole = Path(SMALL.removeprefix("scripted:")).read_text()
    script = tmp_path / "short.yaml"
    script.write_text(whole[: whole.index("- role: coder\n  expect")])
    failed = septet("run", "add", "-m", "scripted:short.yaml", "--yes", "--json", "-n", "adding")
    assert failed.returncode == 5
    assert kinds(failed.stdout)[-2:] == ["chat_halted", "result"]
    result = envelopes(failed.stdout)[-1]
    assert (result["status"], result["exit_code"], result["versions"]) == ("unfinished", 5, 1)
    assert f"septet: {result['detail']}\n" == failed.stderr.splitlines(keepends=True)[-1]
    assert "has no step" in septet("show", "adding").stdout
    script.write_text(whole)
    assert septet("resume", "adding", "-q").returncode == 0
    assert "has no step" not in septet("show", "adding").stdout
    assert "has no step" in septet("export", "adding", "--format", "md").stdout


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["run", "add", "-m", SMALL, "--json", "-n", "adding"], 4),
        (["run", "add", "--json"], 5),
        (["run", "add", "--json", "-m", "what?"], 5),
        (["run", "add", "--json", "-m", SMALL, "-t", "absent.yaml"], 5),
        (["run", "", "--json", "-m", SMALL], 2),
        (["run", "add", "--json", "--rounds", "none"], 2),
        (["resume", "nobody", "--json"], 2),
        (["add", "--json"], 2),
    ],
    ids=lambda value: str(value)[:60],
)
def test_json_ends_with_a_result_whatever_goes_wrong(septet: Septet, args: list[str], code: int) -> None:
    failed = septet(*args)
    assert failed.returncode == code, failed.stderr
    result = envelopes(failed.stdout)[-1]
    assert (result["type"], result["exit_code"]) == ("result", code)
    assert str(result["detail"])[:60] in failed.stderr
    assert result["chat"] == ("adding" if code == 4 else "")
    assert [kind for kind in kinds(failed.stdout) if kind == "result"] == ["result"]
