"""Starting, guarding and restarting a nats-server, and what connecting to one can meet."""

import os
import signal
import stat
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute

from septet.cluster.connection import connect_nats
from septet.cluster.endpoint import NatsEndpoint
from septet.cluster.server import ServerConfig, serve
from septet.errors import BadConfig, BadUsage, SeptetError, Unreachable

pytestmark = pytest.mark.anyio


async def failing(plan: ServerConfig) -> SeptetError:
    """What starting such a server raises."""
    with pytest.raises(SeptetError) as caught:
        async with serve(plan):
            pass
    return caught.value


async def refused(endpoint: NatsEndpoint) -> SeptetError:
    with pytest.raises(SeptetError) as caught:
        async with connect_nats(endpoint):
            pass
    return caught.value


def port_of(endpoint: NatsEndpoint) -> int:
    return int(endpoint.address.rsplit(":", 1)[1])


async def test_only_the_token_opens_the_server(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server:
        async with connect_nats(server.endpoint) as client:
            assert client.is_connected
        for token in ("", "guess"):
            error = await refused(NatsEndpoint(address=server.endpoint.address, token=token))
            assert isinstance(error, BadConfig)
            assert "refused the token" in str(error)


async def test_token_and_configuration_are_private_and_the_token_stays(tmp_path: Path) -> None:
    folder = tmp_path / "host"
    async with serve(ServerConfig(folder=folder)) as server:
        first = server.token
    async with serve(ServerConfig(folder=folder)) as server:
        assert server.token == first

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("token", "server.conf"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


async def test_a_second_host_on_the_port_is_told_so(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path / "first")) as server:
        error = await failing(ServerConfig(folder=tmp_path / "second", port=port_of(server.endpoint)))

    assert isinstance(error, BadUsage)
    assert f"port {port_of(server.endpoint)} is taken" in str(error)


async def test_a_second_host_on_the_store_is_told_so(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)):
        error = await failing(ServerConfig(folder=tmp_path))

    assert isinstance(error, BadUsage)
    assert "another septet host uses" in str(error)


async def test_an_address_that_others_can_reach_needs_tls(tmp_path: Path) -> None:
    error = await failing(ServerConfig(folder=tmp_path, host="0.0.0.0"))

    assert isinstance(error, BadUsage)
    assert "--tls CERT KEY" in str(error)


async def test_a_killed_server_is_started_again_on_the_same_port(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server:
        endpoint, pid = server.endpoint, server.pid
        back = server.restarted
        os.kill(pid, signal.SIGKILL)
        with anyio.fail_after(120):
            await back.wait()

        async with connect_nats(server.endpoint) as client:
            assert client.is_connected
        assert (server.endpoint, server.pid != pid) == (endpoint, True)


async def test_the_server_is_gone_afterwards(tmp_path: Path) -> None:
    async with serve(ServerConfig(folder=tmp_path)) as server:
        pid, endpoint = server.pid, server.endpoint

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert isinstance(await refused(endpoint), Unreachable)


@pytest.mark.parametrize("address", ["", "here", "http://127.0.0.1:1", "nats://", "nats://a b:1"])
async def test_what_is_no_address_is_named(address: str) -> None:
    error = await refused(NatsEndpoint(address=address))

    assert isinstance(error, BadConfig)
    assert "is not the address of a server" in str(error)


async def test_an_address_with_a_secret_is_shown_without_it() -> None:
    error = await refused(NatsEndpoint(address="nats://secret@127.0.0.1:1"))

    assert isinstance(error, Unreachable)
    assert "secret" not in str(error)


async def pretend(version: str, stream: ByteStream) -> None:
    """The first words of a NATS server, which is all that an old one gets to say."""
    async with stream:
        info = f'INFO {{"server_id":"x","version":"{version}","max_payload":1048576,"headers":true}}\r\n'
        await stream.send(info.encode())
        while b"PING" not in await stream.receive():
            pass
        await stream.send(b"PONG\r\n")
        await anyio.sleep_forever()


@pytest.mark.parametrize("version", ["2.9.10", "2.10.26"])
async def test_a_server_that_is_too_old_is_refused_at_connect(version: str) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    errors: list[SeptetError] = []
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, partial(pretend, version))
        errors.append(await refused(NatsEndpoint(address=f"nats://127.0.0.1:{port}")))
        tasks.cancel_scope.cancel()

    assert isinstance(errors[0], BadConfig)
    assert "too old" in str(errors[0])
