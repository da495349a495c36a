"""Where a member finds its host: by the option, by the file of the group chat, by what this machine's host left."""

from pathlib import Path

import pytest

from septet.cluster.endpoint import DEFAULT_ADDRESS, ConnectOptions, address_of


@pytest.mark.parametrize(
    ("named", "address"),
    [
        ("localhost:50060", "nats://127.0.0.1:50060"),
        ("example.org:4223", "nats://example.org:4223"),
    ],
)
def test_the_host_of_a_group_chats_file_is_its_address(tmp_path: Path, named: str, address: str) -> None:
    hostname, port = named.split(":")
    file = tmp_path / "config.yaml"
    file.write_text(f"client_config: {{}}\nhost: {{hostname: {hostname}, port: {port}}}\n")
    assert address_of(ConnectOptions(config=file)) == address
    assert address_of(ConnectOptions(config=file, url="nats://other:1")) == "nats://other:1"


def test_else_it_is_the_address_that_this_machines_host_left(tmp_path: Path) -> None:
    assert address_of(ConnectOptions(store=tmp_path)) == DEFAULT_ADDRESS
    (tmp_path / "address").write_text("nats://127.0.0.1:9\n")
    assert address_of(ConnectOptions(store=tmp_path)) == "nats://127.0.0.1:9"
