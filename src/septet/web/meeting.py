"""The page of one machine's chats, or of a server where members of many machines meet."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from septet.settings.group_chats import each_by_its_own
from septet.settings.meetings import Meeting, adopt, options_of
from septet.web.serving import Address, serve


@dataclass(frozen=True)
class Choices:
    """What the command line says."""

    port: int
    host: str
    token_file: Path | None
    no_open: bool
    model: str
    url: str = ""
    nats_token_file: Path | None = None
    tls_ca: str = ""
    config: Path | None = None


async def serving(choices: Choices) -> int:
    address = Address(host=choices.host, port=choices.port, token_file=choices.token_file)
    if not choices.url and choices.config is None:
        return await serve(address, choices.model, not choices.no_open)
    from septet.wiring.cluster import open_cluster
    from septet.wiring.links import link_to

    team = each_by_its_own(adopt(choices.config).team) if choices.config is not None else None
    meeting = Meeting(
        url=choices.url, token_file=choices.nats_token_file, tls_ca=choices.tls_ca, config=choices.config
    )
    opening = partial(open_cluster, link_to(meeting), team=team, wait=float("inf"), how=options_of(meeting))
    return await serve(address, choices.model, not choices.no_open, opening)
