"""What is missing is a finding of the doctor, and no error of it."""

import pytest

from septet.cli.doctor import check_sandbox
from septet.sandboxes.ladder import VARIABLE


@pytest.mark.anyio
async def test_a_sandbox_that_is_not_there_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "nothing")
    found = await check_sandbox()
    assert (found.what, found.well, found.exit_code, found.optional) == ("sandbox", False, 6, False)
    assert found.detail.startswith("there is no rung 'nothing'")
