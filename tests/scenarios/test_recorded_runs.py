"""What a strong model answered by hand, from only what the requests hold: a web app and a later wish; and three goals
as an honest, a sloppy and an impatient model would, who all have to end with a program that works."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from cli.commands import SCRIPTS
from msgspec.structs import replace
from sampling import sampled
from scenarios.autocoder.playing import home_in

from septet.common.values import Value
from septet.domain.events import ChatEnded, Event, ModelAnswered, PersonSpoke, ToolAnswered
from septet.domain.messages import StopReason, ToolCall
from septet.domain.teams import TeamSpec
from septet.models.providers.scripted import Script as Recording
from septet.models.providers.scripted import ScriptedTurn
from septet.testing.replies import ReceivedRequest, Reply, Script
from septet.testing.server import serve_mock
from septet.ways.table import TEAMS, as_much_again
from septet.wiring.session import open_session, with_model

pytestmark = pytest.mark.anyio
GOAL = (
    "A web app for a household's shared expenses: people add expenses (who paid, for whom, how much), see balances "
    "and the fewest payments that settle them; data in SQLite, a JSON API and a page; only the standard library"
)
WISH = "Expenses need a date (today if none is given), and the page a total per month"


def role_in(request: ReceivedRequest) -> str:
    head = str(request.messages[0]["content"])
    return head.removeprefix("You are the ").partition(" ")[0]


class PlayedTurn(ScriptedTurn, forbid_unknown_fields=True):
    stop: StopReason = "finished"


class PlayedGoal(Value, forbid_unknown_fields=True):
    """A goal, the files that the project has, and what three models replied."""

    goal: str
    files: Mapping[str, str]
    honest: tuple[PlayedTurn, ...]
    sloppy: tuple[PlayedTurn, ...]
    impatient: tuple[PlayedTurn, ...]

    def turns(self, kind: str) -> tuple[PlayedTurn, ...]:
        return {"honest": self.honest, "sloppy": self.sloppy, "impatient": self.impatient}[kind]


def replies_of(turns: Iterable[ScriptedTurn]) -> Script:
    """Each role's recorded replies in their order."""
    left: dict[str, list[Reply]] = defaultdict(list)
    for place, turn in enumerate(turns):
        calls = tuple(
            ToolCall(
                id=f"c{place}.{number}",
                name=call.name,
                arguments=msgspec.json.encode(call.arguments).decode(),
            )
            for number, call in enumerate(turn.calls)
        )
        stop = turn.stop if isinstance(turn, PlayedTurn) else "finished"
        left[turn.role].append(Reply(text=turn.say, calls=calls, piece=4_000, stop=stop))
    return lambda request: left[role_in(request)].pop(0)


def team(form: Literal["text", "tools"]) -> TeamSpec:
    members = tuple(
        replace(one, form=form) if one.role in ("planner", "coder", "reviewer") else one
        for one in TEAMS["iterate"].members
    )
    return replace(TEAMS["iterate"], members=members, approve="auto")


async def play(folder: Path) -> tuple[list[Event], Sequence[ReceivedRequest]]:
    (folder / "app").mkdir()
    script = msgspec.yaml.decode((SCRIPTS / "expenses.yaml").read_bytes(), type=Recording)
    replies = replies_of(script.turns)
    async with serve_mock(replies) as server, open_session(home_in(folder)) as session:
        await session.start(GOAL, with_model(team("tools"), f"url:{server.url}#mock"), folder / "app", "c")
        sandbox = await session.sandbox()
        events = [one.event async for one in session.perform("c", sandbox)]
        await session.append("c", PersonSpoke(text=WISH))
        state = await session.state("c")
        await session.reopen("c", as_much_again(state, state.budget))
        events += [one.event async for one in session.perform("c", sandbox)]
        return events, server.seen


def shared_parts(seen: Sequence[ReceivedRequest]) -> list[float]:
    """How much of each request, from a role's third one on, is the beginning of the role's request before."""
    before: dict[str, list[bytes]] = defaultdict(list)
    parts: list[float] = []
    for request in seen:
        told = msgspec.json.encode([request.fields.get("tools"), request.messages])
        earlier = before[role_in(request)]
        if len(earlier) >= 2:
            parts.append(shared_bytes(earlier[-1], told) / len(told))
        earlier.append(told)
    return parts


def only_added_to(seen: Sequence[ReceivedRequest]) -> bool:
    """Whether each request of a role begins with all that the one before it told, so that caches serve that."""
    before: dict[str, bytes] = {}
    for request in seen:
        told = msgspec.json.encode([request.fields.get("tools"), request.messages])
        earlier = before.get(role_in(request), b"")
        if not told.startswith(earlier.removesuffix(b"]]")):
            return False
        before[role_in(request)] = told
    return True


def shared_bytes(one: bytes, other: bytes) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def lines_answered(answer: ModelAnswered) -> int:
    """The lines that the model wrote: its words and the texts of its calls."""
    texts = [answer.answer.text]
    for call in answer.answer.calls:
        given = msgspec.json.decode(call.arguments, type=dict[str, list[dict[str, str]]])
        texts += [one[key] for one in given.get("edits", ()) for key in ("old", "new")]
    return sum(len(text.splitlines()) for text in texts)


async def test_a_web_app_and_a_later_wish_take_few_requests_that_share_their_beginning(
    tmp_path: Path,
) -> None:
    events, seen = await play(tmp_path)
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done", "done"]
    assert len(seen) <= 12
    assert sum(len(request.body) for request in seen) <= 250_000
    parts = shared_parts(seen)
    assert parts
    assert min(parts) >= 0.8
    written = [path.read_text() for path in (tmp_path / "app").glob("*.py")]
    assert sum(text.count("\n") for text in written) >= 400
    changes = [
        event for event in events if isinstance(event, ToolAnswered) and event.text.startswith("changed: ")
    ]
    (wished,) = [event for event in events if isinstance(event, ModelAnswered) and edits(event)]
    assert len(changes) == 1
    assert lines_answered(wished) <= 2 * lines_changed(changes[0].text) + 12


def edits(event: ModelAnswered) -> bool:
    return any(call.name == "edit" for call in event.answer.calls)


def lines_changed(said: str) -> int:
    """The larger of the lines that came and that went, over all files of the edit."""
    counts = [
        word for word in said.replace(",", " ").split() if word[0] in "+\N{MINUS SIGN}" and word[1:].isdigit()
    ]
    came, went = (sum(int(word[1:]) for word in counts if word[0] == sign) for sign in "+\N{MINUS SIGN}")
    return max(came, went)


BARS = {"honest": (10, 150_000), "sloppy": (12, 150_000), "impatient": (16, 200_000)}
"""At most so many requests and bytes of them."""
IN_WORDS = ("table", "sloppy")
"""The one whose replies are text only."""
CSV = "n,v\na|b,10\nc,9\n"
TABLE = "| n    |    v |\n| ---- | ---: |\n| c    |    9 |\n| a\\|b |   10 |\n"
SHOW = "from durations import show; print(show(3661), show(86401), show(0), show(-60), show(7200))"
NOTES = """
from notes.cli import main
main(["done", "1"]); main(["add", "milk", "--tag", "a", "--tag", "b"]); main(["done", "2"])
main(["list"]); main(["list", "--tag", "b"]); main(["list", "--tag", "c"])
"""


def printed(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "NOTES_FILE": str(folder.parent / "notes.json")}
    line = [sys.executable, "-B", *arguments]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def works(goal: str, folder: Path) -> bool:
    """What the program does, for inputs that nobody in the team was told."""
    if goal == "bug":
        return printed(folder, "-c", SHOW) == (0, "1h 1m 1s 1d 1s 0s -1m 2h\n")
    if goal == "feature":
        (folder.parent / "notes.json").write_text('[{"number": 1, "text": "old", "done": false}]')
        lines = ["[ ]  2 milk #a #b", "[x]  1 old", "[x]  2 milk #a #b", "[x]  2 milk #a #b", "no notes"]
        return printed(folder, "-c", NOTES) == (0, "\n".join([*lines, ""]))
    (program,) = {"csvtable.py", "md_table.py", "csv2md.py"} & {path.name for path in folder.iterdir()}
    (folder.parent / "a.csv").write_text(CSV)
    good = printed(folder, program, "../a.csv", "--sort", "v")
    return good == (0, TABLE) and printed(folder, program, "../a.csv", "--sort", "w") == (2, "")


@pytest.mark.parametrize(
    ("goal", "kind"),
    sampled([(goal, kind) for kind in BARS for goal in ("bug", "feature", "table")], every=4),
)
async def test_honest_sloppy_and_impatient_models_end_right(tmp_path: Path, goal: str, kind: str) -> None:
    played = msgspec.yaml.decode((SCRIPTS / "played" / f"{goal}.yaml").read_bytes(), type=PlayedGoal)
    project = folder_with(tmp_path / "project", played.files)
    spec = team("text" if (goal, kind) == IN_WORDS else "tools")
    turns = played.turns(kind)
    async with serve_mock(replies_of(turns)) as server, open_session(home_in(tmp_path)) as session:
        await session.start(played.goal, with_model(spec, f"url:{server.url}#mock"), project, "c")
        events = [one.event async for one in session.perform("c", await session.sandbox())]
        if played.files:
            await session.deliver("c")
    assert [event.reason for event in events if isinstance(event, ChatEnded)] == ["done"]
    assert works(goal, project)
    requests, size = BARS[kind]
    assert len(server.seen) == len(turns) <= requests
    assert sum(len(request.body) for request in server.seen) <= size
    assert (goal, kind) == IN_WORDS or only_added_to(server.seen)


def folder_with(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository with the files, or an empty folder."""
    folder.mkdir()
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]) if files else ():
        subprocess.run([*git, *words], check=True)
    return folder
