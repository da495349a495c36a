"""The self-check of a sandbox: it passes where a program is held, and fails where it is not."""

import os

import pytest
from msgspec.structs import replace
from sandboxes.rungs import QUICK, RUNGS

from septet.domain.runs import Job, RunResult
from septet.ports import Listener
from septet.sandboxes.ladder import ATTEMPTS, self_check
from septet.sandboxes.rungs.unsafe import UnsafeLocal

pytestmark = pytest.mark.anyio


class Leaky:
    """Gives a program every variable of ours."""

    async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
        return await UnsafeLocal().run(replace(job, environment={**os.environ, **job.environment}), listen)


@pytest.mark.parametrize("rung", [param for param in QUICK if param.values != ("unsafe",)])
async def test_a_sandbox_that_confines_holds_every_attempt(rung: str) -> None:
    check = await self_check(RUNGS[rung]())
    assert check.holds, check
    assert [finding.attempt for finding in check.results] == list(ATTEMPTS)
    assert check.rung == rung
    through = [finding.attempt for finding in check.results if not finding.is_contained]
    assert through == (["write a git hook"] if rung == "landlock" else [])


async def test_without_a_sandbox_the_check_fails_and_says_at_what() -> None:
    check = await self_check(UnsafeLocal())
    assert not check.holds
    assert check.ran
    held = {finding.attempt for finding in check.results if finding.is_contained}
    assert held == {"see the environment"}


async def test_a_sandbox_that_hands_on_our_variables_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    check = await self_check(Leaky())
    assert "see the environment" in {finding.attempt for finding in check.results if not finding.is_contained}


async def test_the_check_leaves_our_own_environment_as_it_is() -> None:
    """Other chats of this process start programs at the same time."""
    seen: list[set[str]] = []

    class Looking:
        async def run(self, job: Job, listen: Listener | None = None) -> RunResult:
            seen.append(set(os.environ))
            return await UnsafeLocal().run(job, listen)

    before = set(os.environ)
    await self_check(Looking())
    assert seen == [before]
