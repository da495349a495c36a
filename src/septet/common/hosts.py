"""Names of hosts that programs may reach, as people write them: `api.example.org`, or `127.0.0.1:8000`."""

import ipaddress
import re

HOST = re.compile(r"(?P<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)(?::(?P<port>\d{1,5}))?")
HIGHEST_PORT = 65_535


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself: `localhost`, or an address of the loopback, in brackets or not."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_trouble(text: str) -> str:
    """Why this is no host; empty where it is one."""
    found = HOST.fullmatch(text.lower())
    if found is None:
        return f"'{text}' is no host"
    if found["port"] and not 0 < int(found["port"]) <= HIGHEST_PORT:
        return f"'{text}' has no such port"
    return ""
