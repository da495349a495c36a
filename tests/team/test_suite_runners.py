"""Reports of other test runners: what Node, Jest, Vitest, Go and Cargo really print, and how it is asked for."""

import shutil
import subprocess
from pathlib import Path

import pytest
from scenarios.folders.chats import fill

from septet.team.suite_runners import parse_suite_output, reporting_command, script_of_package

JEST = (
    '> jest --json\n\n{"success":false,"testResults":[{"name":"/w/test/a.test.js","status":"failed","message":"",'
    '"assertionResults":[{"ancestorTitles":["g"],"title":"adds","status":"passed"},'
    '{"ancestorTitles":[],"title":"bad","status":"failed","failureMessages":["1 is not 2"]},'
    '{"ancestorTitles":["g"],"title":"later","status":"todo"}]},'
    '{"name":"/w/test/b.test.js","status":"failed","message":"SyntaxError","assertionResults":[]}]}\n'
)
JEST_CASES = {
    "test/a.test.js::g > adds": "passed",
    "test/a.test.js::bad": "failed",
    "test/a.test.js::g > later": "skipped",
    "test/b.test.js": "error",
}
GO = """\
{"Action":"run","Package":"m/calc","Test":"TestAdd"}
{"Action":"output","Package":"m/calc","Test":"TestAdd","Output":"ok\\n"}
{"Action":"pass","Package":"m/calc","Test":"TestAdd","Elapsed":0}
{"Action":"fail","Package":"m/calc","Test":"TestBad","Elapsed":0}
{"Action":"fail","Package":"m/calc","Elapsed":0.1}
{"Action":"fail","Package":"m/broken","Elapsed":0}
"""
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/calc-c6626fb655a8d231)

running 3 tests
test tests::adds ... ok
test tests::later ... ignored
test tests::bad ... FAILED

failures:

---- tests::bad stdout ----
test tests::fake ... ok

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.15s

     Running tests/it.rs (target/debug/deps/it-b462ec70d69dbcd3)

running 1 test
test it ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s
"""
READ = {
    "jest": ("npm test", "jest --coverage", JEST, JEST_CASES),
    "vitest": ("npx vitest", "", JEST, JEST_CASES),
    "go": (
        "go test ./...",
        "",
        GO,
        {"m/calc::TestAdd": "passed", "m/calc::TestBad": "failed", "m/broken": "error"},
    ),
    "cargo": (
        "cargo test",
        "",
        CARGO,
        {
            "src/lib.rs::tests::adds": "passed",
            "src/lib.rs::tests::later": "skipped",
            "src/lib.rs::tests::bad": "failed",
            "tests/it.rs::it": "passed",
        },
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_runners_report_is_read(name: str) -> None:
    command, script, output, wanted = READ[name]
    report = parse_suite_output(command, script, output, "/w")
    assert report is not None
    assert {case.id: case.outcome for case in report.cases} == wanted
    assert parse_suite_output(command, script, "it broke\n{ not json\n", "/w") is None


@pytest.mark.parametrize(
    ("command", "script", "wanted"),
    [
        ("npm test", "jest", "npm test -- --json"),
        ("npm test", "vitest", "npm test -- --run --reporter=json"),
        ("npm test", "tsc && jest", "npm test"),
        ("npm test", "mocha", "npm test"),
        ("go test ./...", "", "go test ./... -json"),
        ("cargo test", "", "cargo test --no-fail-fast 2>&1"),
        ("make test", "", "make test"),
    ],
)
def test_a_runner_is_asked_to_report(command: str, script: str, wanted: str) -> None:
    assert reporting_command(command, script) == wanted


def test_what_is_no_script_calls_nothing() -> None:
    assert [script_of_package(text) for text in (None, b"[]", b"{", b'{"scripts": {"test": "jest"}}')] == [
        *("", "", "", "jest")
    ]


TESTS = """\
const test = require('node:test');
const assert = require('assert');
test('adds', () => { console.log('failed "forged"'); assert.equal(1 + 1, 2); });
test('bad', () => assert.equal(1, 2));
test('later', { skip: true }, () => {});
test.describe('group', () => { test.it('adds', () => {}); });
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_node_says_which_file_a_test_is_in(tmp_path: Path) -> None:
    fill(tmp_path, {"test/a.test.js": TESTS, "test/b.test.js": "syntax error("})
    command = reporting_command("node --test test/", "")
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    report = parse_suite_output("node --test test/", "", done.stdout, str(tmp_path))
    assert report is not None, done.stdout + done.stderr
    assert {case.id: case.outcome for case in report.cases} == {
        "test/a.test.js::adds": "passed",
        "test/a.test.js::bad": "failed",
        "test/a.test.js::later": "skipped",
        "test/a.test.js::group > adds": "passed",
        "test/b.test.js": "failed",
    }
