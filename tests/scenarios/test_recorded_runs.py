"""A web app of 470 lines and a later wish, as a strong model answered by hand from only what the requests hold."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest
from cli.commands import SCRIPTS
from msgspec.structs import replace
from scenarios.autocoder.playing import home_in

from septet.domain.events import ChatEnded, Event, ModelAnswered, PersonSpoke, ToolAnswered
from septet.domain.messages import ToolCall
from septet.models.providers.scripted import Script as Recording
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


def replies_of(path: Path) -> Script:
    """Each role's recorded replies in their order."""
    left: dict[str, list[Reply]] = defaultdict(list)
    for place, turn in enumerate(msgspec.yaml.decode(path.read_bytes(), type=Recording).turns):
        calls = tuple(
            ToolCall(
                id=f"c{place}.{number}",
                name=call.name,
                arguments=msgspec.json.encode(call.arguments).decode(),
            )
            for number, call in enumerate(turn.calls)
        )
        left[turn.role].append(Reply(text=turn.say, calls=calls, piece=4_000))
    return lambda request: left[role_in(request)].pop(0)


async def play(folder: Path) -> tuple[list[Event], Sequence[ReceivedRequest]]:
    (folder / "app").mkdir()
    members = tuple(
        replace(one, form="tools") if one.role in ("planner", "coder", "reviewer") else one
        for one in TEAMS["iterate"].members
    )
    team = replace(TEAMS["iterate"], members=members, approve="auto")
    replies = replies_of(SCRIPTS / "expenses.yaml")
    async with serve_mock(replies) as server, open_session(home_in(folder)) as session:
        await session.start(GOAL, with_model(team, f"url:{server.url}#mock"), folder / "app", "c")
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
