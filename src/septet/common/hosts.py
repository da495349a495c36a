"""Checks the names of hosts that programs may reach: `api.example.org` or `127.0.0.1:8000`."""

import ipaddress
import re

HOST = re.compile(r"(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::(?P<port>\d{1,5}))?")
MAX_PORT = 65_535


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: `localhost` or a loopback address, in brackets or not."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_error(text: str) -> str:
    """Why this is not a valid host; empty if it is one."""
    match = HOST.fullmatch(text.lower())
    if match is None:
        return f"'{text}' is not a valid host"
    if match["port"] and not 0 < int(match["port"]) <= MAX_PORT:
        return f"'{text}' is not a valid port"
    return ""
