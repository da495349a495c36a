"""What a strong model answered by hand, from only what the requests hold: a web app and a later wish; and three goals
as an honest, a sloppy and an impatient model would, who all have to end with a program that works."""

import logging
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Literal, NamedTuple

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
LOG = logging.getLogger(__name__)
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
    """A goal, a later wish, the files that the project has, and what three models replied."""

    goal: str
    files: Mapping[str, str]
    wish: str = ""
    honest: tuple[PlayedTurn, ...] = ()
    sloppy: tuple[PlayedTurn, ...] = ()
    impatient: tuple[PlayedTurn, ...] = ()

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


class PlayedRun(NamedTuple):
    """What a recorded run left, and what it took."""

    events: Sequence[Event]
    seen: Sequence[ReceivedRequest]

    @property
    def endings(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, ChatEnded)]

    @property
    def asked(self) -> int:
        return sum(len(request.body) for request in self.seen)

    @property
    def longest(self) -> list[tuple[int, int]]:
        """Of each answer that edits files that there are, the lines that it has and those that it changed."""
        return [(lines_answered(said), changed) for said, changed in edits_made(self.events)]

    @property
    def figures(self) -> str:
        parts = shared_parts(self.seen)
        shared = f"{min(parts):.0%} shared at least" if parts else "no third request of a role"
        lines = ", ".join(f"{answered} lines for {changed}" for answered, changed in self.longest)
        return f"{len(self.seen)} requests, {self.asked / 1000:.1f} kB asked, {shared}; {lines or 'no edits'}"


async def play(played: PlayedGoal, turns: Iterable[ScriptedTurn], spec: TeamSpec, project: Path) -> PlayedRun:
    async with serve_mock(replies_of(turns)) as server, open_session(home_in(project.parent)) as session:
        await session.start(played.goal, with_model(spec, f"url:{server.url}#mock"), project, "c")
        sandbox = await session.sandbox()
        events = [one.event async for one in session.perform("c", sandbox)]
        if played.wish:
            await session.append("c", PersonSpoke(text=played.wish))
            state = await session.state("c")
            await session.reopen("c", as_much_again(state, state.budget))
            events += [one.event async for one in session.perform("c", sandbox)]
        if played.files:
            await session.deliver("c")
        return PlayedRun(events, server.seen)


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
        given = msgspec.json.decode(call.arguments, type=Written)
        texts += [given.text, *(text for one in given.edits for text in (one.old, one.new))]
    return sum(len(text.splitlines()) for text in texts)


class WrittenEdit(Value):
    old: str = ""
    new: str = ""


class Written(Value):
    """What a model writes in the arguments of a call."""

    text: str = ""
    edits: tuple[WrittenEdit, ...] = ()


def edits_made(events: Sequence[Event]) -> list[tuple[ModelAnswered, int]]:
    """Each answer that edits files that there are, and how many lines it changed or wrote."""
    found: list[tuple[ModelAnswered, int]] = []
    for place, said in enumerate(events):
        if isinstance(said, ModelAnswered) and edits(said):
            after = takewhile(lambda event: not isinstance(event, ModelAnswered), events[place + 1 :])
            texts = [event.text for event in after if isinstance(event, ToolAnswered)]
            made = [text for text in texts if text.startswith(("changed: ", "written: "))]
            found += [(said, sum(map(lines_changed, made)))] if made else []
    return found


async def test_a_web_app_and_a_later_wish_take_few_requests_that_share_their_beginning(
    tmp_path: Path,
) -> None:
    script = msgspec.yaml.decode((SCRIPTS / "expenses.yaml").read_bytes(), type=Recording)
    project = folder_with(tmp_path / "app", {})
    played = PlayedGoal(goal=GOAL, files={}, wish=WISH)
    run = await play(played, script.turns, team("tools"), project)
    LOG.info("web app: %s", run.figures)
    assert run.endings == ["done", "done"]
    assert len(run.seen) <= MOST_REQUESTS + 2
    assert run.asked <= 250_000
    parts = shared_parts(run.seen)
    assert parts
    assert min(parts) >= LEAST_SHARED
    written = [path.read_text() for path in project.glob("*.py")]
    assert sum(text.count("\n") for text in written) >= 400
    ((answered, changed),) = run.longest
    assert answered <= 2 * changed + 12


def edits(event: ModelAnswered) -> bool:
    return any(call.name == "edit" for call in event.answer.calls)


def lines_changed(said: str) -> int:
    """The larger of the lines that came and that went, over all files of the edit, or the lines of a new file."""
    words = said.replace(",", " ").replace("(", "+").split()
    counts = [word for word in words if word[0] in "+\N{MINUS SIGN}" and word[1:].isdigit()]
    came, went = (sum(int(word[1:]) for word in counts if word[0] == sign) for sign in "+\N{MINUS SIGN}")
    return max(came, went)


MANNERS = ("honest", "sloppy", "impatient")
MOST_REQUESTS, MOST_ASKED, WISH_ASKED = 10, 150_000, 100_000
LEAST_SHARED = 0.8
"""Of each request from a role's third one on: what the request before it had told already."""
IN_WORDS = ("table", "sloppy")
"""The one whose replies are text only."""
WORDY = {("shopping", "sloppy"), ("bookmarks", "sloppy"), ("bookmarks", "honest")}
"""Those whose third request or a later one is in large part what the model has just said itself, in one long answer."""
CONTINUED = ("bookmarks", "sloppy")
"""The one whose first version was cut: its two parts are one answer in every later request."""
CSV = "n,v\na|b,10\nc,9\n"
TABLE = "| n    |    v |\n| ---- | ---: |\n| c    |    9 |\n| a\\|b |   10 |\n"
SHOW = "from durations import show; print(show(3661), show(86401), show(0), show(-60), show(7200))"
NOTES = """
from notes.cli import main
main(["done", "1"]); main(["add", "milk", "--tag", "a", "--tag", "b"]); main(["done", "2"])
main(["list"]); main(["list", "--tag", "b"]); main(["list", "--tag", "c"])
"""


LIST = """
import threading, urllib.request
from urllib.parse import urlencode
try:
    from shopping import serve
    server = serve()
except ImportError:
    from http.server import HTTPServer
    import app
    server = HTTPServer(("127.0.0.1", 0), app.H)
threading.Thread(target=server.serve_forever, daemon=True).start()
def send(path, **fields):
    address = f"http://127.0.0.1:{server.server_port}{path}"
    return urllib.request.urlopen(address, urlencode(fields).encode()).read().decode()
send("/add", item="milk", who="Ana", number=2, n=2)
shown = send("/add", item="eggs", who="Ben", number=6, n=6)
send("/tick", id=1, i=0)
cleared = send("/clear", x="")
print("milk" in shown, "Ana" in shown, "milk" in cleared, "eggs" in cleared)
"""


MARKS = """
import contextlib, io
from bookmarks import main
def said(*words, db="../m.db"):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(["--db", db, *words])
    return code, out.getvalue()
said("add", "https://one.org/?a=1&b=2", "One & <two>", "--notes", "100% sure", "--tag", "x", "--tag", "y")
said("add", "https://two.org", "Two")
said("add", "https://three.org", "Three", "--tag", "x")
said("delete", "2")
print(said("delete", "2")[0], "one.org" in said("search", "TWO", "0%")[1], "two.org" in said("list")[1])
for file in ("../m.json", "../m.html"):
    said("export", file)
    said("import", file, db=f"{file}.db")
    listed = said("list", "--tag", "y", db=f"{file}.db")[1]
    print(all(part in listed for part in ("One & <two>", "?a=1&b=2", "100% sure", "#x #y")), "three" in listed)
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
    if goal == "shopping":
        return printed(folder, "-c", LIST) == (0, "True True False True\n")
    if goal == "bookmarks":
        left = {path.name for path in folder.iterdir()} & {"a.db", "t.db", "u.db", "o.json"}
        return not left and printed(folder, "-c", MARKS) == (0, "2 True False\nTrue False\nTrue False\n")
    (program,) = {"csvtable.py", "md_table.py", "csv2md.py"} & {path.name for path in folder.iterdir()}
    (folder.parent / "a.csv").write_text(CSV)
    good = printed(folder, program, "../a.csv", "--sort", "v")
    return good == (0, TABLE) and printed(folder, program, "../a.csv", "--sort", "w") == (2, "")


@pytest.mark.parametrize(
    ("goal", "kind"),
    sampled(
        [(goal, kind) for kind in MANNERS for goal in ("bug", "feature", "table", "shopping", "bookmarks")],
        every=5,
    ),
)
async def test_honest_sloppy_and_impatient_models_end_right(tmp_path: Path, goal: str, kind: str) -> None:
    played = msgspec.yaml.decode((SCRIPTS / "played" / f"{goal}.yaml").read_bytes(), type=PlayedGoal)
    project = folder_with(tmp_path / "project", played.files)
    turns = played.turns(kind)
    run = await play(played, turns, team("text" if (goal, kind) == IN_WORDS else "tools"), project)
    LOG.info("%s, %s: %s", goal, kind, run.figures)
    assert run.endings == ["done", "done"] if played.wish else ["done"]
    assert works(goal, project)
    assert len(run.seen) == len(turns) <= MOST_REQUESTS
    assert run.asked <= MOST_ASKED + (WISH_ASKED if played.wish else 0)
    assert min(shared_parts(run.seen), default=1.0) >= (
        LEAST_SHARED if (goal, kind) not in WORDY else LEAST_SHARED - 0.3
    )
    assert (goal, kind) in {IN_WORDS, CONTINUED} or only_added_to(run.seen)
    assert all(answered <= 2 * changed + 12 for answered, changed in run.longest)


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
