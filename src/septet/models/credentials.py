"""How a request is let in: a key in a header, or a token that is renewed before it expires."""

import time
from collections.abc import Awaitable, Callable, Mapping

Credentials = Callable[[], Awaitable[Mapping[str, str]]]
"""The headers that let a request in; asked for before each one, for they may expire."""

Token = tuple[str, float]
"""The token and the moment (seconds since 1970) at which it expires."""

RENEWED_BEFORE = 300.0


def header(name: str, value: str) -> Credentials:
    """A fixed header; none at all without a value."""
    headers = {name: value} if value else {}

    async def give() -> Mapping[str, str]:
        return headers

    return give


def bearer(key: str) -> Credentials:
    return header("Authorization", f"Bearer {key}" if key else "")


def renewed(fetch: Callable[[], Awaitable[Token]], now: Callable[[], float] = time.time) -> Credentials:
    """A bearer token that is fetched anew some minutes before it expires."""
    held: list[Token] = []

    async def give() -> Mapping[str, str]:
        if not held or held[0][1] - now() < RENEWED_BEFORE:
            held[:] = [await fetch()]
        return {"Authorization": f"Bearer {held[0][0]}"}

    return give
