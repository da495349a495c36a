"""The self-check of a sandbox: it passes where a program is held, and fails where it is not."""

import pytest
from sandboxes.rungs import QUICK, RUNGS

from septet.sandboxes.selfcheck import self_check
from septet.sandboxes.unsafe import UnsafeLocal

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("rung", [param for param in QUICK if param.values != ("unsafe",)])
async def test_a_sandbox_that_confines_holds_every_attempt(rung: str) -> None:
    check = await self_check(RUNGS[rung]())
    assert check.holds, check
    assert len(check.findings) == 4
    assert check.rung == rung


async def test_without_a_sandbox_the_check_fails_and_says_at_what() -> None:
    check = await self_check(UnsafeLocal())
    assert not check.holds
    assert check.ran
    failed = {finding.attempt for finding in check.findings if not finding.held}
    assert failed == {"read a secret", "reach a port", "write outside"}
