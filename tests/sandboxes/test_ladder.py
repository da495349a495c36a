"""The choice of a sandbox: what really works here, or a refusal with its remedy."""

from pathlib import Path

import pytest

from septet.domain.runs import Job
from septet.errors import BadUsage, NoSandbox
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.ladder import choose_sandbox, rungs, tried_out
from septet.sandboxes.seatbelt import profile
from septet.sandboxes.unsafe import UnsafeLocal

pytestmark = pytest.mark.anyio


async def test_the_chosen_sandbox_runs_and_names_its_rung(tmp_path: Path) -> None:
    sandbox = await choose_sandbox()
    result = await sandbox.run(Job(command=("echo", "hello"), workspace=str(tmp_path)))
    assert (result.stdout, result.rung) == ("hello\n", "bubblewrap")


async def test_unsafe_is_only_for_those_who_ask() -> None:
    assert isinstance(await choose_sandbox(unsafe=True), UnsafeLocal)
    assert not isinstance(await choose_sandbox(), UnsafeLocal)


@pytest.mark.parametrize("program", ["/nonexistent/bwrap", "/bin/false", "/bin/true", "/bin/cat"])
async def test_a_bubblewrap_that_does_not_work_is_refused_with_the_remedy(program: str) -> None:
    with pytest.raises(NoSandbox, match=r"bubblewrap is not usable \(.*install it .*--unsafe-local"):
        await tried_out(Bubblewrap(program))


async def test_a_rung_can_be_named_and_an_unknown_one_is_refused() -> None:
    with pytest.raises(BadUsage, match="no rung 'ladder': name one of bubblewrap"):
        await choose_sandbox(rung="ladder")
    with pytest.raises(NoSandbox, match="seatbelt is not usable"):
        await choose_sandbox(rung="seatbelt")


async def test_every_rung_is_reported_with_its_trouble() -> None:
    found = {rung.name: rung for rung in await rungs()}
    assert found["bubblewrap"].usable
    assert "macOS" in found["seatbelt"].trouble


def test_a_profile_of_macos_quotes_what_it_allows() -> None:
    rules = profile(["/usr"], ['/work "here"'])
    assert '(allow file-read* (subpath "/usr"))' in rules
    assert r'(subpath "/work \"here\"")' in rules
    assert rules.startswith("(version 1)\n(deny default)\n")
