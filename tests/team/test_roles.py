"""Members are told what programs run with, as the sandbox says; small models only what is unusual."""

from msgspec.structs import replace

from septet.domain.events import EnvironmentProbed
from septet.domain.state import State
from septet.team.briefing import environment_section, unusual_environment_section


def test_what_the_sandbox_said_is_told() -> None:
    found = EnvironmentProbed(python="3.12.1", packages=("numpy 2.1.0", "pytest"), commands=("git", "node"))
    told = environment_section(State(environment=found))
    assert "Python 3.12.1, its standard library, numpy 2.1.0 and pytest. Commands: git, node." in told
    assert "Nothing else can be imported." in told
    assert "There is no network. A server listens on a free port of 127.0.0.1." in told
    assert "A run may take 60 s, 2,048 MiB of memory and 256 processes" in told
    assert unusual_environment_section(State(environment=found)) == []


def test_many_packages_are_counted() -> None:
    found = EnvironmentProbed(python="3.12.1", packages=tuple(f"p{number}" for number in range(200)))
    assert "p79 and 120 more." in environment_section(State(environment=found))


def test_without_a_look_at_the_sandbox_only_what_is_always_there_is_told() -> None:
    assert "Python's standard library and pytest." in environment_section(State())


def test_hosts_and_packages_are_told() -> None:
    team = replace(State().team, network=("api.example.org",), packages="auto")
    for told in (environment_section(State(team=team)), *unusual_environment_section(State(team=team))):
        assert "only api.example.org over HTTP" in told
        assert "installed before the run" in told
        assert "Nothing else" not in told
