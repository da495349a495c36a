"""What goes over the wire to another machine: tried with real certificates."""

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
from cluster.logins import refused

from septet.cluster.bus import NatsBus
from septet.cluster.client import Connection
from septet.cluster.connection import connect_nats, tls_context
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.server import NatsServer, ServerConfig, serve
from septet.cluster.users import Users
from septet.errors import BadConfig, BadUsage, SeptetError, Unreachable

pytestmark = pytest.mark.anyio
OTHER = "127.0.0.2"


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
async def encrypted(
    folder: Path, papers: tuple[str, str, str], host: str = OTHER
) -> AsyncGenerator[NatsServer]:
    plan = ServerConfig(folder=folder, host=host, certificate=papers[0], key=papers[1], roles={"coder": ()})
    async with serve(plan) as server:
        yield server


async def test_another_address_speaks_tls_to_who_trusts_the_certificate(
    tmp_path: Path, papers: tuple[str, str, str]
) -> None:
    folder = tmp_path / "host"
    async with encrypted(folder, papers) as server:
        assert server.address.startswith(f"tls://{OTHER}:")
        token = Users(folder).token_file("coder").read_text()
        async with connect_nats(
            NatsEndpoint(address=server.address, token=token, ca_file=papers[2])
        ) as client:
            assert client.is_connected
        async with connect_nats(server.endpoint) as client:  # the host itself knows its certificate
            assert client.is_connected
        stranger = await refused(NatsEndpoint(address=server.address, token=token))
        wrong = await refused(NatsEndpoint(address=server.address, token="coder:guess", ca_file=papers[2]))

    assert isinstance(stranger, BadConfig)
    assert "certificate" in str(stranger)
    assert "refused the token" in str(wrong)


async def test_what_goes_over_the_wire_cannot_be_read(tmp_path: Path, papers: tuple[str, str, str]) -> None:
    async with encrypted(tmp_path / "host", papers) as server:
        seen, listener = bytearray(), await anyio.create_tcp_listener(local_host=OTHER)
        port = listener.extra(SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, partial(tap, server.address, seen))
            endpoint = NatsEndpoint(address=f"tls://{OTHER}:{port}", token=server.token, ca_file=papers[2])
            async with connect_nats(endpoint) as client:
                await client.publish("septet.bus.x", b"the plan is secret")
                await client.flush()
            tasks.cancel_scope.cancel()

    assert b"CONNECT" not in seen
    assert server.token.split(":")[1].encode() not in seen
    assert b"the plan is secret" not in seen
    assert len(seen) > 200


async def tap(address: str, seen: bytearray, near: ByteStream) -> None:
    """A wire with somebody listening."""
    host, port = address.rpartition("/")[2].split(":")
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


async def test_a_flush_ends_after_the_server_has_read_what_was_written_before_it(tmp_path: Path) -> None:
    """Else what others publish right after a subscription is missed."""
    sent = b""
    async with serve(ServerConfig(folder=tmp_path, roles={})) as server:
        seen, listener = bytearray(), await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, partial(tap, server.address, seen))
            endpoint = NatsEndpoint(address=f"nats://127.0.0.1:{port}", token=server.token)
            async with connect_nats(endpoint) as client, NatsBus(client).subscribe("flushed"):
                sent = bytes(seen)
            tasks.cancel_scope.cancel()

    assert b"SUB septet.bus.flushed.*" in sent
    assert b"PING\r\n" in sent.partition(b"SUB septet.bus.flushed.*")[2]


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
            await refused(
                NatsEndpoint(address=f"tls://127.0.0.1:{port}", token="a:secret", ca_file=papers[2])
            )
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
        host, port = self._address.rpartition("/")[2].split(":")
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
    endpoint = NatsEndpoint(address=f"tls://127.0.0.1:{port}", token="a:secret", ca_file=papers[2])
    with anyio.fail_after(120):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, mute_server)
            with pytest.raises(Unreachable) as caught:
                async with connect_nats(endpoint, timeout=0.2):
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
        endpoint = NatsEndpoint(address=f"tls://{OTHER}:{port}", token=server.token, ca_file=papers[2])
        with anyio.fail_after(120):
            async with listener, anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, bridge.carry)
                async with connect_nats(endpoint, timeout=0.5) as client:
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
        host, port = server.address.rpartition("/")[2].split(":")
        old = ssl.create_default_context(cafile=papers[2])
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.receive()
            from anyio.streams.tls import TLSStream

            with pytest.raises(ssl.SSLError):
                await TLSStream.wrap(stream, hostname=host, ssl_context=old, server_side=False)


async def test_an_address_of_another_machine_is_not_talked_to_in_the_clear() -> None:
    error = await refused(NatsEndpoint(address="nats://192.0.2.1:4222", token="a:b"))

    assert isinstance(error, BadUsage)
    assert "sent unencrypted" in str(error)


def test_a_named_certificate_is_trusted_by_itself_and_an_authority_for_the_name(
    papers: tuple[str, str, str],
) -> None:
    own = tls_context(NatsEndpoint(address="tls://h", certificate=papers[0]))
    assert not own.check_hostname
    assert own.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
    assert own.cert_store_stats()["x509"] == 1
    signed = tls_context(NatsEndpoint(address="tls://h", ca_file=papers[2]))
    assert signed.check_hostname
    assert signed.cert_store_stats() == {"x509": 1, "crl": 0, "x509_ca": 1}
    everybody = tls_context(NatsEndpoint(address="tls://h"))
    assert everybody.check_hostname
    assert everybody.cert_store_stats() == ssl.create_default_context().cert_store_stats()
    contexts = (own, signed, everybody)
    assert {one.minimum_version for one in contexts} == {ssl.TLSVersion.TLSv1_3}
    assert {one.verify_mode for one in contexts} == {ssl.CERT_REQUIRED}


@pytest.mark.parametrize("file", [{"certificate": "NAME"}, {"ca_file": "NAME"}])
@pytest.mark.parametrize("text", ["", "no PEM", None])
def test_what_is_no_certificate_is_named(tmp_path: Path, file: dict[str, str], text: str | None) -> None:
    path = tmp_path / "cert.pem"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadConfig) as raised:
        tls_context(NatsEndpoint(address="tls://h", **dict.fromkeys(file, str(path))))
    assert raised.value.cause.startswith(f"{path} is not a certificate (")
    assert raised.value.remedy == "name a PEM file"
