"""From what a person said of a server to a link that opens it."""

import socket
from collections.abc import Sequence

from septet.buses.connection import ADDRESS, Link, is_loopback
from septet.settings.meetings import Meeting, address_of, certificate_of, token_of, usual_token_file


def link_to(meeting: Meeting, roles: Sequence[str] = ()) -> Link:
    """On one machine the token is found where the host keeps it; the host may be started later."""
    address, token = address_of(meeting), token_of(meeting)
    found = ADDRESS.fullmatch(address)
    here = not token and found is not None and not found["secret"] and is_loopback(found["host"])
    return Link(
        address=address,
        token=token,
        token_file=str(usual_token_file(meeting, roles)) if here else "",
        authority=meeting.tls_ca,
        certificate=certificate_of(meeting),
        name=f"septet on {socket.gethostname()}",
    )
