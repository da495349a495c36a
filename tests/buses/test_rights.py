"""Who may come in and what each may say: tried against a real server, with real certificates."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import nats.errors
import pytest
import trustme
from anyio.abc import ByteStream, SocketAttribute
from nats.aio.client import Client
from nats.js.api import StreamConfig
from nats.js.client import JetStreamContext

from septet.buses.connection import Connection, Link, connect
from septet.buses.rights import FLOOR, MADE, NAMED
from septet.buses.server import Server, ServerPlan, invite, serve, uninvite
from septet.buses.users import Users
from septet.domain.codec import KINDS
from septet.errors import BadConfig, BadUsage, SeptetError, Unreachable

pytestmark = pytest.mark.anyio
OTHER = "127.0.0.2"
SPOKEN = "septet.log.chat.ev.person_spoke.="
BOTH = {"coder": ("ada",), "runner": ()}


async def refused(link: Link) -> SeptetError:
    with pytest.raises(SeptetError) as caught:
        async with connect(link):
            pass
    return caught.value


def log_of(folder: Path) -> str:
    return (folder / "server.log").read_text()


@asynccontextmanager
async def as_member(server: Server, folder: Path, role: str) -> AsyncGenerator[Connection]:
    """A connection with the token that opens this role and no other."""
    token = Users(folder).token_file(role)
    async with connect(Link(address=server.link.address, token_file=str(token))) as client:
        yield client


@asynccontextmanager
async def with_log(server: Server) -> AsyncGenerator[Client]:
    """The conductor, on a server with the streams that rights are about."""
    async with connect(server.link) as client:
        stream = JetStreamContext(client)
        await stream.add_stream(StreamConfig(name="SEPTET_LOG", subjects=["septet.log.>"]))  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        yield client


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
        SPOKEN,
        "_INBOX_runner.x",
    ],
)
async def test_a_member_may_not_say_what_its_role_does_not_need(tmp_path: Path, subject: str) -> None:
    async with serve(ServerPlan(folder=tmp_path, roles=BOTH)) as server:
        async with with_log(server), as_member(server, tmp_path, "coder") as client:
            with pytest.raises(nats.errors.Error):
                await client.request(subject, b"{}", timeout=0.3)
        async with connect(server.link) as client:
            info = await JetStreamContext(client).stream_info("SEPTET_LOG")

    assert info.state.messages == 0
    assert f'user:coder" - Publish Violation - Subject "{subject}"' in log_of(tmp_path)


async def test_a_member_may_store_what_its_role_makes_by_any_of_its_names(tmp_path: Path) -> None:
    async with (
        serve(ServerPlan(folder=tmp_path, roles=BOTH)) as server,
        with_log(server),
        as_member(server, tmp_path, "coder") as client,
    ):
        for kind in ("version_written.=", "model_answered.coder", "model_answered.ada"):
            answer = await client.request(f"septet.log.chat.t.{kind}", b"{}", timeout=5)
            assert b'"seq"' in answer.data
        assert client.refused == []


def test_every_event_is_somebodys() -> None:
    """A new kind of event must be thought of here: who may store it?"""
    conductor = {"chat_started", "chat_continued", "data_described"}
    person = {"step_granted", "stop_requested", "person_spoke", "work_accepted", "plan_approved"}
    members = {*NAMED, *FLOOR, *(kind.split(".")[0] for kinds in MADE.values() for kind in kinds)}

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
        serve(ServerPlan(folder=tmp_path, roles=BOTH)) as server,
        with_log(server) as conductor,
        as_member(server, tmp_path, "coder") as client,
    ):
        answers = [
            (await client.request(subject, b"{}", timeout=5, headers=headers)).data
            for headers in (first, first, {**first, "Nats-Msg-Id": "another"})
        ]
        words = [
            (await conductor.request(SPOKEN, b"{}", timeout=5, headers={"Nats-Msg-Id": "two"})).data
            for _ in range(2)
        ]
        info = await JetStreamContext(conductor).stream_info("SEPTET_LOG")

    assert [b"wrong last sequence" in answer for answer in answers] == [False, True, True]
    assert [b"duplicate" in answer for answer in words] == [False, True]
    assert info.state.messages == 2


async def test_a_member_hears_no_answers_that_are_for_others(tmp_path: Path) -> None:
    async with (
        serve(ServerPlan(folder=tmp_path, roles=BOTH)) as server,
        as_member(server, tmp_path, "coder") as spy,
    ):
        for subject in ("_INBOX_runner.>", "_INBOX_conductor.>", ">", "septet.work.runner"):
            await spy.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]  # the client's types are partial
        await spy.flush()

    assert log_of(tmp_path).count('user:coder" - Subscription Violation') == 4


async def test_even_the_conductor_cannot_take_anything_out_of_the_log(tmp_path: Path) -> None:
    async with serve(ServerPlan(folder=tmp_path)) as server, with_log(server) as client:
        for call in ("DELETE", "PURGE", "MSG.DELETE"):
            with pytest.raises(nats.errors.TimeoutError):
                await client.request(f"$JS.API.STREAM.{call}.SEPTET_LOG", b"", timeout=0.3)

    assert log_of(tmp_path).count('user:conductor" - Publish Violation') == 3


async def test_wrong_tokens_are_refused_and_logged(tmp_path: Path) -> None:
    async with serve(ServerPlan(folder=tmp_path, roles={"coder": ()})) as server:
        for token in ("coder:guess", "nobody:guess", "guess", ""):
            error = await refused(Link(address=server.link.address, token=token))
            assert isinstance(error, BadConfig)
            assert "refused the token" in str(error)

    log = log_of(tmp_path)
    assert 'User "coder"' in log
    assert 'User "nobody"' in log
    assert log.count("authentication error") >= 4


async def test_an_oversized_message_is_refused_and_the_connection_lives_on(tmp_path: Path) -> None:
    async with serve(ServerPlan(folder=tmp_path)) as server, connect(server.link) as client:
        with pytest.raises(nats.errors.MaxPayloadError):
            await client.publish("septet.bus.x", b"x" * (client.max_payload + 1))
        await client.flush()
        assert client.is_connected


async def test_an_oversized_message_of_a_rude_client_is_logged(tmp_path: Path) -> None:
    async with serve(ServerPlan(folder=tmp_path)) as server:
        host, port = server.link.address.removeprefix("nats://").split(":")
        user, _, secret = server.token.partition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            hello = f'CONNECT {{"user":"{user}","pass":"{secret}","verbose":false}}\r\n'
            await stream.send(hello.encode() + b"PUB septet.bus.x 99999999\r\n")
            answers = b""
            with anyio.fail_after(10):
                while b"Maximum Payload" not in answers:
                    answers += await stream.receive()

    assert "maximum payload exceeded" in log_of(tmp_path).lower()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def papers(authority: trustme.CA, tmp_path: Path) -> tuple[str, str, str]:
    """Files: the server's certificate, its key, and the certificate of who signed it."""
    made = authority.issue_cert(OTHER)
    names = (tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem")
    made.cert_chain_pems[0].write_to_path(names[0])
    made.private_key_pem.write_to_path(names[1])
    authority.cert_pem.write_to_path(names[2])
    return str(names[0]), str(names[1]), str(names[2])


@asynccontextmanager
async def encrypted(folder: Path, papers: tuple[str, str, str], host: str = OTHER) -> AsyncGenerator[Server]:
    plan = ServerPlan(folder=folder, host=host, certificate=papers[0], key=papers[1], roles={"coder": ()})
    async with serve(plan) as server:
        yield server


async def test_another_address_speaks_tls_to_who_trusts_the_certificate(
    tmp_path: Path, papers: tuple[str, str, str]
) -> None:
    folder = tmp_path / "host"
    async with encrypted(folder, papers) as server:
        assert server.address.startswith(f"tls://{OTHER}:")
        token = Users(folder).token_file("coder").read_text()
        async with connect(Link(address=server.address, token=token, authority=papers[2])) as client:
            assert client.is_connected
        async with connect(server.link) as client:  # the host itself knows its certificate
            assert client.is_connected
        stranger = await refused(Link(address=server.address, token=token))
        wrong = await refused(Link(address=server.address, token="coder:guess", authority=papers[2]))

    assert isinstance(stranger, BadConfig)
    assert "certificate" in str(stranger)
    assert "refused the token" in str(wrong)


async def test_what_goes_over_the_wire_cannot_be_read(tmp_path: Path, papers: tuple[str, str, str]) -> None:
    async with encrypted(tmp_path / "host", papers) as server:
        seen, listener = bytearray(), await anyio.create_tcp_listener(local_host=OTHER)
        port = listener.extra(SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, partial(tap, server.address, seen))
            link = Link(address=f"tls://{OTHER}:{port}", token=server.token, authority=papers[2])
            async with connect(link) as client:
                await client.publish("septet.bus.x", b"the plan is secret")
                await client.flush()
            tasks.cancel_scope.cancel()

    assert b"CONNECT" not in seen
    assert server.token.split(":")[1].encode() not in seen
    assert b"the plan is secret" not in seen
    assert len(seen) > 200


async def tap(address: str, seen: bytearray, near: ByteStream) -> None:
    """A wire with somebody listening."""
    host, port = address.removeprefix("tls://").split(":")
    async with near, await anyio.connect_tcp(host, int(port)) as far, anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on, near, far, seen)
        tasks.start_soon(pass_on, far, near, seen)


async def pass_on(source: ByteStream, sink: ByteStream, seen: bytearray) -> None:
    try:
        async for piece in source:
            seen.extend(piece)
            await sink.send(piece)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


async def test_the_token_is_not_told_to_a_server_that_gives_up_tls(
    tmp_path: Path, papers: tuple[str, str, str]
) -> None:
    """Whoever stands in between could take TLS out of the server's first words."""
    errors: list[SeptetError] = []
    heard, listener = bytearray(), await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, partial(plain_server, heard))
        errors.append(
            await refused(Link(address=f"tls://127.0.0.1:{port}", token="a:secret", authority=papers[2]))
        )
        tasks.cancel_scope.cancel()

    assert b"secret" not in heard
    assert isinstance(errors[0], BadConfig)
    assert "does not speak TLS" in str(errors[0])


async def plain_server(heard: bytearray, stream: ByteStream) -> None:
    async with stream:
        await stream.send(
            b'INFO {"server_id":"x","version":"2.15.0","auth_required":true,"max_payload":99}\r\n'
        )
        async for piece in stream:
            heard.extend(piece)


class Bridge:
    """A way to the server that can break, and then lets nothing through to it for a while."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.mute = False
        self.heard_mute = anyio.Event()
        self.scopes: list[anyio.CancelScope] = []

    async def carry(self, near: ByteStream) -> None:
        host, port = self._address.removeprefix("tls://").split(":")
        with anyio.CancelScope() as scope:
            self.scopes.append(scope)
            async with (
                near,
                await anyio.connect_tcp(host, int(port)) as far,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(pass_on, far, near, bytearray())
                if self.mute:
                    self.heard_mute.set()
                    await anyio.sleep_forever()
                await pass_on(near, far, bytearray())

    def cut(self, mute: bool) -> None:
        self.mute = mute
        for scope in self.scopes:
            scope.cancel()


async def test_a_server_that_never_ends_the_handshake_is_given_up(papers: tuple[str, str, str]) -> None:
    errors: list[SeptetError] = []
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    link = Link(address=f"tls://127.0.0.1:{port}", token="a:secret", authority=papers[2])
    with anyio.fail_after(60):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, mute_server)
            with pytest.raises(Unreachable) as caught:
                async with connect(link, patience=0.2):
                    pass
            errors.append(caught.value)
            tasks.cancel_scope.cancel()

    assert "no server answers" in str(errors[0])


async def mute_server(stream: ByteStream) -> None:
    async with stream:
        await stream.send(
            b'INFO {"server_id":"x","version":"2.15.0","tls_required":true,"max_payload":99}\r\n'
        )
        await anyio.sleep_forever()


async def test_a_handshake_that_is_broken_off_does_not_hold_up_a_client_that_reconnects(
    tmp_path: Path, papers: tuple[str, str, str]
) -> None:
    async with encrypted(tmp_path / "host", papers) as server:
        bridge, listener = Bridge(server.address), await anyio.create_tcp_listener(local_host=OTHER)
        port = listener.extra(SocketAttribute.local_port)
        link = Link(address=f"tls://{OTHER}:{port}", token=server.token, authority=papers[2])
        with anyio.fail_after(60):
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, bridge.carry)
                async with connect(link, patience=0.5) as client:
                    bridge.cut(mute=True)
                    await bridge.heard_mute.wait()
                    bridge.mute = False
                    while not await answers(client):
                        pass
                tasks.cancel_scope.cancel()


async def answers(client: Connection) -> bool:
    try:
        await client.flush(1)
    except (nats.errors.Error, ConnectionError):
        await anyio.sleep(0.05)
        return False
    return True


async def test_only_tls_13_is_spoken(tmp_path: Path, papers: tuple[str, str, str]) -> None:
    async with encrypted(tmp_path / "host", papers) as server:
        host, port = server.address.removeprefix("tls://").split(":")
        old = ssl.create_default_context(cafile=papers[2])
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.receive()
            from anyio.streams.tls import TLSStream

            with pytest.raises(ssl.SSLError):
                await TLSStream.wrap(stream, hostname=host, ssl_context=old, server_side=False)


async def test_an_address_of_another_machine_is_not_talked_to_in_the_clear() -> None:
    error = await refused(Link(address="nats://192.0.2.1:4222", token="a:b"))

    assert isinstance(error, BadUsage)
    assert "readable on the way" in str(error)


async def test_a_token_file_that_is_written_later_is_read_then(tmp_path: Path) -> None:
    """A member may be started before the first host ever was."""
    with anyio.fail_after(30):
        async with serve(ServerPlan(folder=tmp_path / "probe")) as probe:
            port = int(probe.link.address.rsplit(":", 1)[1])
        folder = tmp_path / "host"
        link = Link(address=f"nats://127.0.0.1:{port}", token_file=str(folder / "token"))
        connected = anyio.Event()

        async def join() -> None:
            async with connect(link, wait=60):
                connected.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(join)
            async with serve(ServerPlan(folder=folder, port=port)):
                await connected.wait()


async def test_who_is_invited_while_the_server_runs_may_come_in_at_once(tmp_path: Path) -> None:
    async with serve(ServerPlan(folder=tmp_path)) as server:
        token = invite(tmp_path, "laptop", ["coder", "runner"]).token
        link = Link(address=server.link.address, token=token)
        with anyio.fail_after(10):
            while True:  # the server reads its list in its own time
                try:
                    async with connect(link) as client:
                        assert client.is_connected
                    break
                except BadConfig:
                    continue
        uninvite(tmp_path, "laptop")
        with anyio.fail_after(10):
            while not isinstance(await tried(link), BadConfig):
                pass


async def tried(link: Link) -> SeptetError | None:
    try:
        async with connect(link):
            return None
    except SeptetError as error:
        return error
