"""Chats that the page conducts: what goes wrong with one is told on the page, and leaves no chat that never began."""

import gc
from collections.abc import Mapping
from pathlib import Path
from weakref import ref

import pytest
from starlette.requests import Request
from starlette.responses import Response
from web.serving import Web

from septet.errors import SandboxFailed
from septet.settings.home import find_home
from septet.ways.table import TEAMS
from septet.web.app_state import open_app_state
from septet.web.requests import with_error_responses
from septet.wiring import chat_runner
from septet.wiring.session import Session, open_session, with_model

NO_SANDBOX: Mapping[str, str] = {"SEPTET_SANDBOX": "seatbelt"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("X"), "internal error (KeyError: 'X')"),
        (ExceptionGroup("a task group", [SandboxFailed("it broke", "mend it")]), "it broke"),
    ],
)
async def test_what_nobody_has_foreseen_in_a_chat_is_told_on_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, told: str
) -> None:
    async def broken(self: Session, unsafe: bool = False) -> None:
        raise error

    monkeypatch.setattr(Session, "sandbox", broken)
    team = with_model(TEAMS["writer-editor"], "scripted:demo/hello")
    async with (
        open_session(find_home({"SEPTET_HOME": str(tmp_path)})) as session,
        open_app_state(session, "") as app,
    ):
        chat = await session.start("anything", team, None)
        app.runner.start(await app.chats.state(chat))
        await app.runner.wait_until_finished(chat)
        assert app.runner.status(chat).trouble == told


@pytest.mark.anyio
async def test_a_chat_that_failed_leaves_its_error_and_no_memory_and_many_leave_only_the_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Work:
        """What a chat has in its hands when it fails."""

    gone: list[ref[Work]] = []

    async def broken(self: Session, unsafe: bool = False) -> None:
        work = Work()
        gone.append(ref(work))
        raise SandboxFailed("it broke", "mend it")

    monkeypatch.setattr(Session, "sandbox", broken)
    monkeypatch.setattr(chat_runner, "MAX_PAST_RUNS", 2)
    team = with_model(TEAMS["writer-editor"], "scripted:demo/hello")
    async with (
        open_session(find_home({"SEPTET_HOME": str(tmp_path)})) as session,
        open_app_state(session, "") as app,
    ):
        chats = [await session.start("anything", team, None) for _ in range(3)]
        for chat in chats:
            app.runner.start(await app.chats.state(chat))
            await app.runner.wait_until_finished(chat)
        gc.collect()
        assert [one() for one in gone] == [None] * 3
        assert [app.runner.status(chat).trouble for chat in chats] == ["", "it broke", "it broke"]


@pytest.mark.anyio
async def test_what_nobody_has_foreseen_in_a_request_is_an_answer() -> None:
    async def broken(request: Request) -> Response:
        raise KeyError("X")

    answer = await with_error_responses(broken)(Request({"type": "http"}))
    assert (answer.status_code, answer.body) == (
        500,
        b'{"error":"internal error (KeyError: \'X\')","remedy":""}',
    )


def test_where_nothing_can_run_no_chat_is_begun(tmp_path: Path) -> None:
    web = Web(tmp_path / "home", variables=NO_SANDBOX)
    try:
        refused = web.post("/api/chats", {"goal": "anything", "yes": True})
        assert refused.status == 400
        assert "seatbelt is not usable" in str(refused.json()["error"])
        assert web.get("/api/chats").body == b"[]"
    finally:
        web.stop()
