"""Test runners of JavaScript as npm installs them: each test is known by its name, before and after."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenarios.folders.chats import ACCEPT, code, fill, fold_events, git, plan, play, repository, script

from septet.chat.results import report_table
from septet.domain.events import EvidenceFound, RunFinished
from septet.domain.runs import Limits

TESTS = """\
describe('sums', () => {
  test('adds', () => { console.log('{"testResults": []}'); expect(calc.add(2, 3)).toBe(5); });
});
test('doubles', () => expect(calc.double(4)).toBe(8));
test.skip('later', () => {});
test('of old', () => expect(calc.version).toBe('1'));
"""
WRONG = "const add = (a, b) => a - b;\nconst double = (a) => a * 2;\n"
JEST = {
    "calc.js": WRONG + "module.exports = { add, double };\n",
    "test/calc.test.js": "const calc = require('../calc.js');\n" + TESTS,
}
VITEST = {
    "calc.js": WRONG + "export { add, double };\n",
    "test/calc.test.js": "import { describe, expect, test } from 'vitest';\n"
    "import * as calc from '../calc.js';\n" + TESTS,
}
INSTALLED = {
    "jest@30.5.2": ("commonjs", JEST),
    "jest@27.5.1": ("commonjs", JEST),
    "vitest@5.1.0": ("module", VITEST),
    "vitest@4.1.0": ("module", VITEST),
    "vitest@2.1.9": ("module", VITEST),
}


def installed(folder: Path, package: str) -> Path:
    """A committed project with this package in its `node_modules`."""
    kind, files = INSTALLED[package]
    settings = {"name": "calc", "type": kind, "scripts": {"test": package.partition("@")[0]}}
    fill(folder, {**files, "package.json": json.dumps(settings), ".gitignore": "node_modules/\n"})
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-dev", package]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"npm could not install {package}: {done.stderr[-300:]}")
    return repository(folder, {})


@pytest.mark.anyio
@pytest.mark.torture
@pytest.mark.parametrize("package", INSTALLED)
async def test_each_test_of_an_installed_runner_is_known(tmp_path: Path, package: str) -> None:
    project = installed(tmp_path / "project", package)
    mended = {"calc.js": INSTALLED[package][1]["calc.js"].replace("a - b", "a + b")}
    wanted = plan("", "mends test/calc.test.js::sums > adds", "tests test/calc.test.js::doubles")
    model = script(tmp_path, wanted, code(mended), code(mended), ACCEPT)
    played = await play(
        tmp_path, model, "iterate", rounds=2, change=lambda team: replace(team, limits=Limits(seconds=120))
    )
    state = fold_events(played.events)
    baseline = next(
        one.result for one in played.events if isinstance(one, RunFinished) and one.purpose == "baseline"
    )
    assert baseline.tests is not None, baseline.stderr
    assert {case.id: case.outcome for case in baseline.tests.cases} == {
        "test/calc.test.js::sums > adds": "failed",
        "test/calc.test.js::doubles": "passed",
        "test/calc.test.js::later": "skipped",
        "test/calc.test.js::of old": "failed",
    }
    found = [event.detail for event in played.events if isinstance(event, EvidenceFound)]
    assert found == ["1 failed before, 1 passed now", "1 passed"]
    assert played.ended.reason == "done", played.ended
    assert "failed before too: test/calc.test.js::of old" in report_table(state)
    assert git(project, "status", "--porcelain", "-uall") == " M calc.js\n"
    assert "startTime" not in played.told, "the report itself is not told"
