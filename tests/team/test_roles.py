"""Members are told what the place offers; the usual place needs no words."""

from msgspec.structs import replace

from septet.domain.state import State
from septet.team.briefing import environment_section


def test_the_usual_place_needs_no_words() -> None:
    assert environment_section(State()) == []


def test_hosts_and_packages_are_told() -> None:
    team = replace(State().team, network=("api.example.org",), packages="auto")
    (told,) = environment_section(State(team=team))
    assert "only api.example.org over HTTP" in told
    assert "installed before the run" in told
