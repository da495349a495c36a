"""`autocoder(dict)`: a handle that can be waited for, stepped, paused and stopped, from anywhere."""

import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from scenarios.autocoder.hello import CASES, fill, write_script
from scenarios.autocoder.playing import home_in

from septet import BadUsage, Handle, autocoder
from septet.domain.events import ModelAnswered, Recorded, TurnOpened
from septet.errors import BadConfig
from septet.wiring.autocoder import check_project
from septet.wiring.session import open_session

ROOT = Path(__file__).parents[3]
CASE = CASES["wrong code"]
SECRET = "sk-" + "very-secret-0123456789"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("SEPTET_HOME", str(home_in(tmp_path).data))
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "project", CASE.files)
    return {
        "project_name": "hello_world",
        "goal": "greet",
        "project_dir": "project",
        "log_level": "quiet",
        "model": write_script(tmp_path / "script.yaml", CASE.steps),
        "api_key": SECRET,
    }


def log_of(tmp_path: Path, chat: str = "hello_world") -> list[Recorded]:
    async def read() -> list[Recorded]:
        async with open_session(home_in(tmp_path)) as session:
            return await session.log(chat)

    return anyio.run(read)


def turns(log: list[Recorded]) -> list[str]:
    return [one.event.speaker for one in log if isinstance(one.event, TurnOpened)]


def test_it_builds_in_its_folder_and_says_nothing(
    project: dict[str, object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    handle = autocoder(project)
    result = handle.wait()
    assert (result.status, result.exit_code, result.chat) == ("done", 0, "hello_world")
    assert handle.result == result
    assert result.workspace == str(tmp_path / "project")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("given", "chat"),
    [("Hello World", "hello-world"), ("Größe & Höhe!", "grosse-hohe"), ("my_project.2", "my_project.2")],
)
@pytest.mark.torture
def test_a_project_may_have_any_name(project: dict[str, object], given: str, chat: str) -> None:
    first = autocoder({**project, "project_name": given, "step": True})
    first.step()
    first.pause()
    assert first.stop().chat == chat


def test_a_key_alone_means_a_model_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another")
    monkeypatch.delenv("SEPTET_MODEL", raising=False)
    wanted = check_project({"goal": "greet", "api_key": SECRET})
    assert wanted.model == "openai/gpt-5-mini"
    assert check_project({"goal": "greet"}).model == ""
    assert wanted.model in (ROOT / "docs" / "autocoder.md").read_text()


def test_normally_each_thing_that_happens_is_a_short_line(
    project: dict[str, object], capfd: pytest.CaptureFixture[str]
) -> None:
    autocoder({**project, "log_level": "normal"}).wait()
    lines = capfd.readouterr().err.splitlines()
    assert "septet: changed main.py" in lines
    assert max(map(len, lines)) < 200


def test_debug_holds_prompts_and_never_the_key(
    project: dict[str, object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    autocoder({**project, "log_level": "debug"}).wait()
    out, said = capfd.readouterr()
    assert out == ""
    assert "You are the coder of an autocoder" in said
    assert SECRET not in said
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_paused_start_runs_nothing_and_a_step_is_one_step(
    project: dict[str, object], tmp_path: Path
) -> None:
    handle = autocoder({**project, "step": True})
    assert handle.step(timeout=60)
    assert turns(log_of(tmp_path))[:2] == ["planner", "proxy"]
    assert sum(isinstance(one.event, ModelAnswered) for one in log_of(tmp_path)) == 1
    assert handle.step(timeout=60)
    assert turns(log_of(tmp_path)) == ["planner", "proxy", "runner", "coder"]
    assert sum(isinstance(one.event, ModelAnswered) for one in log_of(tmp_path)) == 1
    assert handle.step(timeout=60)
    assert turns(log_of(tmp_path)) == ["planner", "proxy", "runner", "coder", "runner"]
    assert handle.running
    handle.resume()
    assert handle.wait().status == "done"
    assert handle.step() is False


def test_a_step_that_goes_wrong_says_so(project: dict[str, object], tmp_path: Path) -> None:
    handle = autocoder({**project, "step": True, "model": write_script(tmp_path / "short.yaml", ())})
    assert handle.step(timeout=60)
    assert handle.step(timeout=60)
    with pytest.raises(BadConfig, match="has no step 1 of the coder"):
        handle.step(timeout=60)
    with pytest.raises(BadConfig, match="has no step"):
        handle.step()
    assert not handle.running


def test_stop_ends_it_and_says_so(project: dict[str, object], tmp_path: Path) -> None:
    handle = autocoder({**project, "step": True})
    assert handle.step(timeout=60)
    assert handle.stop().status == "stopped"
    kinds = [type(one.event).__name__ for one in log_of(tmp_path)]
    assert kinds[-2:] == ["StopRequested", "ChatEnded"]


def test_a_pause_holds_it_until_it_is_resumed(project: dict[str, object], tmp_path: Path) -> None:
    handle = autocoder({**project, "step": True})
    assert handle.step(timeout=60)
    handle.resume()
    handle.pause()
    with pytest.raises(TimeoutError):
        handle.wait(timeout=1)
    assert handle.running
    assert handle.result is None
    held = len(log_of(tmp_path))
    with pytest.raises(TimeoutError):
        handle.wait(timeout=1)
    assert len(log_of(tmp_path)) == held
    handle.resume()
    assert handle.wait().status == "done"


def test_a_stop_before_anything_happened(project: dict[str, object]) -> None:
    assert autocoder({**project, "step": True}).stop().status == "stopped"


def test_an_unfinished_project_goes_on_where_it_was(project: dict[str, object], tmp_path: Path) -> None:
    async def half() -> None:
        from septet.ways.table import TEAMS
        from septet.wiring.session import with_model

        async with open_session(home_in(tmp_path)) as session:
            spec = with_model(TEAMS["autocoder"], str(project["model"]))
            await session.start("greet", spec, tmp_path / "project", "hello_world")
            async for recorded in session.perform("hello_world", await session.sandbox()):
                if isinstance(recorded.event, ModelAnswered):
                    break

    anyio.run(half)
    assert autocoder(project).wait().status == "done"
    said = [one.event.role for one in log_of(tmp_path) if isinstance(one.event, ModelAnswered)]
    assert said == ["planner", "coder", "reviewer"]


@pytest.mark.anyio
async def test_it_works_inside_an_event_loop(project: dict[str, object]) -> None:
    handle = autocoder(project)
    ticks = 0
    while handle.running:
        ticks += 1
        await anyio.sleep(0.01)
    assert (await handle.finished()).status == "done"
    assert ticks > 10


def test_it_works_from_a_thread(project: dict[str, object]) -> None:
    found: list[Handle] = []
    thread = threading.Thread(target=lambda: found.append(autocoder({**project, "step": True})))
    thread.start()
    thread.join()
    assert found[0].stop().status == "stopped"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"goal": ""}, "the goal is empty"),
        ({"goal": 5}, "does not understand its dict"),
        ({"golas": "x"}, "unknown field `golas`"),
        ({"log_level": "loud"}, "does not understand its dict"),
        ({"project_name": "../up"}, "not a valid name"),
    ],
)
def test_a_bad_dict_is_refused_before_anything_starts(
    project: dict[str, object], change: dict[str, object], reason: str
) -> None:
    with pytest.raises(BadUsage, match=reason):
        autocoder({**project, **change})


def test_a_program_whose_last_line_it_is_waits_for_it(project: dict[str, object], tmp_path: Path) -> None:
    program = f"from septet import autocoder\nautocoder({project!r})\n"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=120)
    assert [one.event.__class__.__name__ for one in log_of(tmp_path)][-3:] == [
        "ChatEnded",
        "DeliveryStarted",
        "Delivered",
    ]


def test_a_program_may_end_while_a_run_is_paused(project: dict[str, object], tmp_path: Path) -> None:
    program = f"from septet import autocoder\nautocoder({ {**project, 'step': True}!r}).step()\n"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, timeout=120)
    assert turns(log_of(tmp_path)) == ["planner", "proxy"]
    assert autocoder(project).wait().status == "done"


def test_what_went_wrong_is_raised_by_wait(project: dict[str, object]) -> None:
    with pytest.raises(Exception, match="cannot be read"):
        autocoder({**project, "model": "scripted:nowhere.yaml"}).wait()
