"""The team that a small local model gets by itself, as a file: for a server that does not say what it serves."""

from pathlib import Path

import msgspec

from septet.domain.teams import MemberSettings, TeamSettings
from septet.models.local.catalogue import CATALOGUE
from septet.ways.table import TEAMS
from septet.wiring.session import with_model

LOCAL = f"local/{CATALOGUE[0].name}"


def write_small_team(path: Path, name: str = "iterate") -> Path:
    """The members as the product adapts them to an embedded model, without keepsakes; a JSON text is YAML too."""
    team = with_model(TEAMS[name], LOCAL)
    members = [{"role": one.role, "name": one.name, **settings(one, MemberSettings)} for one in team.members]
    path.write_bytes(msgspec.json.encode({"name": name, **settings(team, TeamSettings), "members": members}))
    return path


def settings(
    one: MemberSettings | TeamSettings, shared: type[MemberSettings | TeamSettings]
) -> dict[str, object]:
    """What a team file and the log share."""
    return {field: msgspec.to_builtins(getattr(one, field)) for field in shared.__struct_fields__}
