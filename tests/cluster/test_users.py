"""Who may come in and what each may say: tried against a real server."""

import logging
from pathlib import Path

import anyio
import nats.errors
import pytest
from cluster.logins import as_member, log_of, refused, with_log
from nats.js.client import JetStreamContext
from polling import poll

from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.server import ServerConfig, add_user, remove_user, serve
from septet.cluster.users import MOVE_EVENTS, OWN_EVENTS, ROLE_EVENTS
from septet.domain.codec import KINDS
from septet.errors import BadConfig, SeptetError

pytestmark = pytest.mark.anyio
PATIENCE = 120
PERSON_BRANCH = "septet.log.chat.ev.person_spoke.="
BOTH = {"coder": ("ada",), "runner": ()}


@pytest.mark.parametrize(
    "subject",
    [
        "$JS.API.STREAM.DELETE.SEPTET_LOG",
        "$JS.API.STREAM.PURGE.SEPTET_LOG",
        "$JS.API.STREAM.UPDATE.SEPTET_LOG",
        "septet.log.chat.t.chat_started.=",
        "septet.log.chat.t.plan_approved.=",
        "septet.log.chat.t.review_given.=",
        "septet.log.chat.t.run_finished.=",
        "septet.log.chat.t.model_answered.reviewer",
        "septet.log.chat.t.packages_decided.person",
        "$KV.septet-presence.member.runner.1",
        "septet.work.coder",
        "septet.log.chat.t.chat_ended.=",
        "septet.log.chat.t.chat_ended.reviewer",
        "septet.bus.live=2Echat.reviewer",
        "septet.bus.live=2Echat",
        PERSON_BRANCH,
        "_INBOX_runner.x",
    ],
)
async def test_a_member_may_not_say_what_its_role_does_not_need(tmp_path: Path, subject: str) -> None:
    async with serve(ServerConfig(folder=tmp_path, roles=BOTH)) as server:
        async with with_log(server), as_member(server, tmp_path, "coder") as client:
            with pytest.raises(nats.errors.Error):
                await client.request(subject, b"{}", timeout=0.3)
            await client.flush()  # the server has read and refused it
        async with connect_nats(server.endpoint) as client:
            info = await JetStreamContext(client).stream_info("SEPTET_LOG")

    assert info.state.messages == 0
    assert f'user:coder" - Publish Violation - Subject "{subject}"' in log_of(tmp_path)


async def test_a_member_may_store_what_its_role_makes_by_any_of_its_names(tmp_path: Path) -> None:
    async with (
        serve(ServerConfig(folder=tmp_path, roles=BOTH)) as server,
        with_log(server),
        as_member(server, tmp_path, "coder") as client,
    ):
        for kind in ("version_written.=", "model_answered.coder", "model_answered.ada"):
            answer = await client.request(f"septet.log.chat.t.{kind}", b"{}", timeout=60)
            assert b'"seq"' in answer.data
        assert client.permission_errors == []


def test_every_event_is_somebodys() -> None:
    """A new kind of event must be thought of here: who may store it?"""
    conductor = {"chat_started", "chat_continued", "chat_halted", "data_described"}
    conductor |= {"environment_probed", "base_surveyed", "base_moved", "delivery_started", "delivered"}
    person = {"step_granted", "stop_requested", "person_spoke", "work_accepted", "plan_approved"}
    members = {
        *OWN_EVENTS,
        *MOVE_EVENTS,
        *(kind.split(".")[0] for kinds in ROLE_EVENTS.values() for kind in kinds),
    }

    assert members | conductor | person == set(KINDS.values())
    assert not members & (conductor | person)


async def test_what_is_sent_again_is_not_stored_again(tmp_path: Path) -> None:
    """Whoever kept a message and sends it once more finds it known by its id, or behind the fence."""
    subject = "septet.log.chat.t.version_written.="
    first = {
        "Nats-Msg-Id": "one",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "Nats-Expected-Last-Subject-Sequence-Subject": "septet.log.chat.>",
    }
    async with (
        serve(ServerConfig(folder=tmp_path, roles=BOTH)) as server,
        with_log(server) as conductor,
        as_member(server, tmp_path, "coder") as client,
    ):
        answers = [
            (await client.request(subject, b"{}", timeout=60, headers=headers)).data
            for headers in (first, first, {**first, "Nats-Msg-Id": "another"})
        ]
        words = [
            (await conductor.request(PERSON_BRANCH, b"{}", timeout=60, headers={"Nats-Msg-Id": "two"})).data
            for _ in range(2)
        ]
        info = await JetStreamContext(conductor).stream_info("SEPTET_LOG")

    assert [b"wrong last sequence" in answer for answer in answers] == [False, True, True]
    assert [b"duplicate" in answer for answer in words] == [False, True]
    assert info.state.messages == 2


async def test_a_member_hears_no_answers_that_are_for_others(tmp_path: Path) -> None:
    async with (
        serve(ServerConfig(folder=tmp_path, roles=BOTH)) as server,
        as_member(server, tmp_path, "coder") as spy,
    ):
        for subject in ("_INBOX_runner.>", "_INBOX_conductor.>", ">", "septet.work.runner"):
            await spy.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        await spy.flush()

    assert log_of(tmp_path).count('user:coder" - Subscription Violation') == 4


async def test_even_the_conductor_cannot_take_anything_out_of_the_log(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server, with_log(server) as client:
        for call in ("DELETE", "PURGE", "MSG.DELETE"):
            with pytest.raises(nats.errors.TimeoutError):
                await client.request(f"$JS.API.STREAM.{call}.SEPTET_LOG", b"", timeout=0.3)
        await client.flush()

    assert log_of(tmp_path).count('user:conductor" - Publish Violation') == 3


async def test_wrong_tokens_are_refused_and_logged(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path, roles={"coder": ()})) as server:
        for token in ("coder:guess", "nobody:guess", "guess", ""):
            error = await refused(NatsEndpoint(address=server.endpoint.address, token=token))
            assert isinstance(error, BadConfig)
            assert "refused the token" in str(error)

    log = log_of(tmp_path)
    assert 'User "coder"' in log
    assert 'User "nobody"' in log
    assert log.count("authentication error") >= 4


async def test_an_oversized_message_is_refused_and_the_connection_lives_on(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server, connect_nats(server.endpoint) as client:
        with pytest.raises(nats.errors.MaxPayloadError):
            await client.publish("septet.bus.x", b"x" * (client.max_payload + 1))
        await client.flush()
        assert client.is_connected


async def test_an_oversized_message_of_a_rude_client_is_logged(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server:
        host, port = server.endpoint.address.removeprefix("nats://").split(":")
        user, _, secret = server.token.partition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            hello = f'CONNECT {{"user":"{user}","pass":"{secret}","verbose":false}}\r\n'
            await stream.send(hello.encode() + b"PUB septet.bus.x 99999999\r\n")
            answers = b""
            with anyio.fail_after(120):
                while b"Maximum Payload" not in answers:
                    answers += await stream.receive()

    assert "maximum payload exceeded" in log_of(tmp_path).lower()


async def test_a_token_file_that_is_written_later_is_read_then(tmp_path: Path) -> None:
    """A member may be started before the first host ever was."""
    with anyio.fail_after(120):
        async with serve(ServerConfig(folder=tmp_path / "probe")) as probe:
            port = int(probe.endpoint.address.rsplit(":", 1)[1])
        folder = tmp_path / "host"
        endpoint = NatsEndpoint(address=f"nats://127.0.0.1:{port}", token_file=str(folder / "token"))
        connected = anyio.Event()

        async def join() -> None:
            async with connect_nats(endpoint, wait=60):
                connected.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(join)
            async with serve(ServerConfig(folder=folder, port=port)):
                await connected.wait()


async def test_who_is_invited_while_the_server_runs_may_come_in_at_once(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server:
        token = add_user(tmp_path, "laptop", ["coder", "runner"]).token
        endpoint = NatsEndpoint(address=server.endpoint.address, token=token)
        await until(endpoint, None)
        remove_user(tmp_path, "laptop")
        await until(endpoint, BadConfig)


async def test_who_is_dismissed_while_connected_is_told_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = anyio.Event()

    def hear(record: logging.LogRecord) -> bool:
        if "does not accept the token of laptop any more" in record.getMessage():
            told.set()
        return True

    caplog.handler.addFilter(hear)
    async with serve(ServerConfig(folder=tmp_path)) as server:
        token = add_user(tmp_path, "laptop", ["coder"]).token
        endpoint = NatsEndpoint(address=server.endpoint.address, token=token)
        await until(endpoint, None)
        async with connect_nats(endpoint):
            remove_user(tmp_path, "laptop")
            with anyio.fail_after(PATIENCE):
                await told.wait()


async def until(endpoint: NatsEndpoint, outcome: type[SeptetError] | None) -> None:
    """Tries to come in until that comes of it: the server reads its list of users in its own time."""

    async def is_reached() -> bool:
        return type(await tried(endpoint)) is (outcome or type(None))

    await poll(is_reached, PATIENCE)


async def tried(endpoint: NatsEndpoint) -> SeptetError | None:
    try:
        async with connect_nats(endpoint):
            return None
    except SeptetError as error:
        return error
