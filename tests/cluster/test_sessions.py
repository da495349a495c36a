"""A session on a shared log: its chats are numbered with those of everybody else."""

from pathlib import Path

import pytest

from septet.cluster.server import ServerConfig, serve
from septet.domain.events import (
    ChatStarted,
    DataDescribed,
    DecisionRecorded,
    Event,
    SnapshotTaken,
    VersionWritten,
)
from septet.domain.reduce import fold
from septet.domain.teams import RoleSpec, TeamSpec
from septet.wiring.cluster import open_cluster
from septet.wiring.forks import bring_back, fork_chat
from septet.wiring.session import Session

pytestmark = pytest.mark.anyio

TEAM = TeamSpec(
    name="pair", members=(RoleSpec(name="coder", role="coder", model=("scripted:none.yaml",)),), floor="pair"
)
CARDS = [DataDescribed(path=f"{name}.csv", sha256="0" * 64, size=1, card="one column") for name in "ab"]
VERSIONS = [VersionWritten(number=number, files=(), tree=str(number)) for number in (1, 2)]


async def kinds(session: Session, chat: str) -> list[type[Event]]:
    return [type(recorded.event) for recorded in await session.log(chat)]


async def test_chats_with_data_are_started_forked_and_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEPTET_HOME", str(tmp_path / "home"))
    async with (
        serve(ServerConfig(folder=tmp_path / "nats")) as server,
        open_cluster(server.endpoint) as session,
    ):
        chat = await session.start("count", TEAM, tmp_path / "work", "count", CARDS)
        for version in VERSIONS:
            await session.store.append(chat, version, after=(await session.state(chat)).seq)
        log = await session.log(chat)

        early = await fork_chat(session, chat, None, log[2].seq)
        late = await fork_chat(session, chat, VERSIONS[0], 0)
        await bring_back(session, fold(log), VERSIONS[0], "to see")

        begun = [ChatStarted, DataDescribed, DataDescribed]
        assert await kinds(session, early) == begun
        assert await kinds(session, late) == [*begun, VersionWritten]
        written = [VersionWritten, VersionWritten, SnapshotTaken, DecisionRecorded, VersionWritten]
        assert await kinds(session, chat) == begun + written
