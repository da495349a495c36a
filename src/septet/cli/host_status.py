"""`septet host status`: the host, its members and its chats, for people and for programs."""

from collections.abc import Iterable
from time import time

import anyio
import msgspec

from septet.cli.output import put, put_exactly
from septet.domain.counts import counted
from septet.domain.presence import Seen
from septet.domain.terminals import neutral
from septet.wiring.links import Link
from septet.wiring.standing import ChatStanding, Standing, standing

LONGEST = 200


def show_status(link: Link, as_json: bool) -> int:
    found = anyio.run(standing, link)
    put_exactly(msgspec.json.encode(found).decode()) if as_json else put("\n".join(lines(found)))
    return 0


def lines(found: Standing) -> Iterable[str]:
    yield f"server   {found.address}, nats-server {found.version}"
    for stream in found.streams:
        copies = f", {stream.replicas} copies, led by {stream.leader}" if stream.replicas > 1 else ""
        yield f"stream   {stream.name}: {counted(stream.messages, 'message')}, {stream.bytes / 1e6:.1f} MB{copies}"
    yield from section("members", [person(one) for one in found.people if one.presence.kind == "member"])
    yield from section(
        "conductors", [person(one) for one in found.people if one.presence.kind == "conductor"]
    )
    yield from section("chats", [row(chat) for chat in found.chats])


def section(title: str, rows: list[tuple[str, ...]]) -> Iterable[str]:
    yield ""
    yield title if rows else f"{title}: none"
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def person(one: Seen) -> tuple[str, ...]:
    who = one.presence
    does = ", ".join(who.roles) or counted(len(who.chats), "chat")
    sign = f"{one.silent:.0f} s ago" if one.there else f"silent for {one.silent:.0f} s"
    return (f"  {plain(who.name)}", plain(does), plain(f"{who.machine}, process {who.pid}"), sign)


def row(chat: ChatStanding) -> tuple[str, ...]:
    by = plain(", ".join(chat.conductors)) or ("" if chat.ended else "nobody")
    return (
        f"  {plain(chat.chat)}",
        plain(chat.status),
        f"conducted by {by}" if by else "",
        ago(chat.changed),
    )


def plain(text: str) -> str:
    """What members say of themselves, and what they call chats, on one line that no terminal obeys."""
    return " ".join(neutral(text).split())[:LONGEST]


def ago(moment: float) -> str:
    seconds = max(0.0, time() - moment)
    return f"{seconds:.0f} s ago" if seconds < 120 else f"{seconds / 60:.0f} min ago"
