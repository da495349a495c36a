"""One action a step: what cannot be done is said and asked again, and nothing happens twice."""

from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest
from scenarios.autocoder.hello import CASES, MAIN, PLAN, TEST, Arguments, Step, fill, write_script
from scenarios.autocoder.playing import play, team

from septet.chat.results import status
from septet.domain.events import (
    ChatEnded,
    Event,
    ModelAnswered,
    Recorded,
    ReplyRefused,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.reduce import fold
from septet.team.context import Context
from septet.tools import registry
from septet.tools.registry import action

pytestmark = pytest.mark.anyio
RIGHT = CASES["wrong code"].steps[0]


@pytest.fixture
def registered() -> Generator[None]:
    yield
    registry.REGISTERED.clear()


def ending(events: list[Event]) -> ChatEnded:
    (ended,) = [event for event in events if isinstance(event, ChatEnded)]
    return ended


def reasons(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, ReplyRefused)]


def spoken(call: object) -> Arguments:
    return {"role": "coder", "say": call} if isinstance(call, str) else {"role": "coder", "calls": [call]}


def script(path: Path, *calls: object) -> str:
    """A script whose coder calls these, the last one over and over; a text is an answer without a call."""
    turns: list[Arguments] = [{"role": "planner", "say": PLAN}]
    turns += [spoken(call) for call in calls]
    turns += [{"role": "reviewer", "say": "verdict: accept"}]
    path.write_bytes(msgspec.yaml.encode({"turns": turns}))
    return f"scripted:{path}"


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": {"reasoning": "because", **arguments}}


async def test_bad_calls_are_refused_with_a_reason_and_asked_again(tmp_path: Path) -> None:
    fill(tmp_path / "project", CASES["wrong code"].files)
    edit = dict(RIGHT.arguments)
    decision = edit.pop("decision")
    wrong = {"wrong": "test", "item": "P1", "why": "?"}
    model = script(
        tmp_path / "s.yaml",
        "It is done.",
        call("format_disk"),
        call("replace_code", **edit, decision=decision),
        "unused",
    )
    events = await play(tmp_path, model)
    assert ending(events).reason == "done"
    assert reasons(events)[0].startswith("no action was called; call one of create,")
    assert "there is no action 'format_disk'; the actions are create," in reasons(events)[1]
    project = fill(tmp_path / "two" / "project", CASES["wrong code"].files)
    model = script(
        tmp_path / "t.yaml",
        {"name": "replace_code", "arguments": '{"path": __import__("os").system("touch pwned")}'},
        call("replace_code", **edit),
        call("replace_code", **edit, decision=wrong),
    )
    events = await play(tmp_path / "two", model)
    assert ending(events).reason == "error"
    assert "not a JSON object" in reasons(events)[0]
    assert "`decision` must say" in reasons(events)[1]
    assert "says that the test is wrong, but main.py would change" in reasons(events)[2]
    assert {path.name for path in project.iterdir()} >= {"main.py", "test_main.py"}
    assert not list(tmp_path.rglob("pwned"))


async def test_left_out_or_broken_code_is_never_written(tmp_path: Path) -> None:
    elided = MAIN + "# ... rest of the code\n"
    model = script(
        tmp_path / "s.yaml",
        call("create", code=elided, test_code=TEST),
        call("create", code="def f(:\n", test_code=TEST),
        call("create", code=MAIN, test_code=TEST),
    )
    events = await play(tmp_path, model)
    assert ending(events).reason == "done"
    assert "code was left out" in reasons(events)[0]
    assert "SyntaxError" in reasons(events)[1]
    assert len([event for event in events if isinstance(event, VersionWritten)]) == 1


async def test_a_model_that_is_content_with_failing_tests_never_ends_as_done(tmp_path: Path) -> None:
    fill(tmp_path / "project", CASES["wrong code"].files)
    shades = [MAIN.replace("hello, {", f"hullo{'!' * n}, {{") for n in range(1, 4)]
    decision = {"wrong": "code", "item": "P1", "why": "surely now"}
    calls = [call("write_code", path="main.py", code=code, decision=decision) for code in shades]
    events = await play(tmp_path, script(tmp_path / "s.yaml", *calls), spec=team(rounds=2))
    assert ending(events) == ChatEnded(reason="bound", detail="2 rounds are used up", by="runner")


WELCOME = 'def main():\n    print("hello, world")\n\n\nif __name__ == "__main__":\n    main()\n'
GREET = "import sys\n\n\ndef greet(name):\n    return {}\n\n\n" + WELCOME
EMPTY_TEST = "from main import greet\n\n\ndef test_greet():\n    greet('ada')\n"
LIES: dict[str, tuple[str, str, str]] = {
    "a test that asserts nothing": (GREET.format("''"), EMPTY_TEST, "bound"),
    "a program that asks for pytest": (
        GREET.format("f'hello, {name}' if 'pytest' in sys.modules else ''"),
        TEST,
        "bound",
    ),
    "a program that knows its test": (GREET.format("'hello, ' + 'you'"), TEST, "done"),
}


@pytest.mark.parametrize("name", LIES)
async def test_a_lie_to_the_autocoder_is_not_said_to_have_passed_all_checks(
    tmp_path: Path, name: str
) -> None:
    lie, test, reason = LIES[name]
    (tmp_path / "project").mkdir()
    model = script(tmp_path / "s.yaml", *[call("create", code=lie, test_code=test)] * 3)
    events = await play(tmp_path, model, spec=team(rounds=1))
    state = fold([Recorded(chat="c", seq=seq, at=0.0, event=one) for seq, one in enumerate(events, 1)])
    assert (ending(events).reason, "all checks passed" in status(state)) == (reason, False)


async def test_going_in_circles_ends_the_chat(tmp_path: Path) -> None:
    fill(tmp_path / "project", CASES["wrong code"].files)
    one, two = (MAIN.replace("hello, {", f"{word}, {{") for word in ("hullo", "hallo"))
    decision = {"wrong": "code", "item": "P1", "why": "surely now"}
    calls = [
        call("write_code", path="main.py", code=code, decision=decision) for code in (two, one, two, one)
    ]
    events = await play(tmp_path, script(tmp_path / "s.yaml", *calls))
    assert ending(events).reason == "no_progress"


@pytest.mark.usefixtures("registered")
async def test_what_must_not_be_repeated_is_answered_as_interrupted(tmp_path: Path) -> None:
    paid: list[str] = []

    @action(repeatable=False)
    def pay(context: Context, amount: int) -> Context:
        """Pay, and note it in the project."""
        paid.append(str(amount))
        return context.with_file("bill.txt", f"{amount}\n")

    model = script(tmp_path / "s.yaml", call("pay", amount=5), call("create", code=MAIN, test_code=TEST))
    await play(tmp_path, model, until=lambda event: isinstance(event, ToolCalled))
    events = await play(tmp_path, model)
    assert paid == []
    assert "pay was interrupted; whether it took effect is not known" in reasons(events)[0]
    assert ending(events).reason == "done"
    (first, _) = [event for event in events if isinstance(event, ToolAnswered)]
    assert first.failed


@pytest.mark.usefixtures("registered")
async def test_a_persons_own_action_works_like_ours(tmp_path: Path) -> None:
    @action
    def stamp(context: Context, holder: str) -> Context:
        """Put a header on main.py."""
        return context.with_file("main.py", f"# by {holder}\n{MAIN}").with_file("test_main.py", TEST)

    events = await play(tmp_path, script(tmp_path / "s.yaml", call("stamp", holder="me")))
    assert ending(events).reason == "done"
    assert (tmp_path / "project" / "main.py").read_text().startswith("# by me\n")


async def test_what_the_person_changes_in_between_is_a_version_of_its_own(tmp_path: Path) -> None:
    wrong = Step("create", {"code": MAIN.replace("hello", "hullo"), "test_code": TEST}, "")
    model = write_script(tmp_path / "s.yaml", (wrong,))
    seen: list[Event] = []

    def at_the_second_reasoning(event: Event) -> bool:
        seen.append(event)
        return seen.count(TurnOpened(speaker="runner")) == 2

    await play(tmp_path, model, until=at_the_second_reasoning)
    (tmp_path / "project" / "main.py").write_text(MAIN)
    events = await play(tmp_path, model)
    notes = [event.note for event in events if isinstance(event, VersionWritten)]
    assert notes == ["create: create is needed", "as found in the workspace"]
    assert ending(events).reason == "done"
    assert len([event for event in events if isinstance(event, ModelAnswered)]) == 3


async def test_main_is_run_although_the_plan_does_not_say_so(tmp_path: Path) -> None:
    plan = PLAN.replace("run: python main.py\n", "").replace(
        "python main.py =>", "python -c 'import main; print(main.greet(\"world\"))' =>"
    )
    broken = MAIN + "    raise SystemExit(4)\n"
    turns: list[Arguments] = [
        {"role": "planner", "say": plan},
        spoken(call("create", code=broken, test_code=TEST)),
        {**spoken(call("write_code", path="main.py", code=MAIN)), "expect": "the program exits with 4"},
        {"role": "reviewer", "say": "verdict: accept"},
    ]
    (tmp_path / "s.yaml").write_bytes(msgspec.yaml.encode({"turns": turns}))
    events = await play(tmp_path, f"scripted:{tmp_path / 's.yaml'}")
    assert ending(events).reason == "done"


async def test_a_file_linked_from_outside_is_replaced_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(CASES["wrong code"].files["main.py"])
    project = fill(tmp_path / "project", {"test_main.py": TEST})
    (project / "main.py").hardlink_to(outside)
    events = await play(tmp_path, write_script(tmp_path / "s.yaml", (RIGHT,)))
    assert ending(events).reason == "done"
    assert outside.read_text() == CASES["wrong code"].files["main.py"]
    assert (project / "main.py").read_text() == MAIN


async def test_every_call_of_an_answer_is_carried_out_or_answered_and_all_are_one_version(
    tmp_path: Path,
) -> None:
    several = [
        call("create_new_file", path="notes.py", code="A = 1\n"),
        call("insert_code", path="notes.py", line=1, code="B = 2"),
        call("create_new_file", path="more.py", code="C = 3\n"),
        call("delete_file", path="more.py"),
        call("delete_file", path="absent.py"),
    ]
    turns: list[Arguments] = [
        {"role": "planner", "say": PLAN},
        {"role": "coder", "calls": several},
        {"role": "reviewer", "say": "verdict: accept"},
    ]
    (tmp_path / "s.yaml").write_bytes(msgspec.yaml.encode({"turns": turns}))
    events = await play(
        tmp_path, f"scripted:{tmp_path / 's.yaml'}", lambda one: isinstance(one, VersionWritten)
    )
    answered = [event for event in events if isinstance(event, ToolAnswered)]
    assert [(event.id[-2:], event.failed) for event in answered] == [
        (".1", False),
        (".2", True),
        (".3", False),
        (".4", False),
        (".5", True),
    ]
    assert "moved the lines of notes.py" in answered[1].text
    (version,) = [event for event in events if isinstance(event, VersionWritten) and not event.found]
    assert {file.path for file in version.files} >= {"notes.py"}
    assert "more.py" not in {file.path for file in version.files}
    assert "not done: " in version.note
