"""Reports of other test runners: what Node, Jest, Vitest, Go and Cargo really print, and how it is asked for."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scenarios.folders.chats import fill

from septet.team.suite_runners import parse_suite_output, reporting_command, script_of_package

REPORTS = Path(__file__).parent / "reports"
"""What Jest and Vitest wrote for one project: in it, one file cannot be imported."""
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
    report = parse_suite_output(command, script, output)
    assert report is not None
    assert {case.id: case.outcome for case in report.cases} == wanted
    assert parse_suite_output(command, script, "it broke\n{ not json\n") is None


@pytest.mark.parametrize(
    ("command", "script", "wanted"),
    [
        ("npm test", "tsc && jest", "npm test"),
        ("npm test", "mocha", "npm test"),
        ("go test ./...", "", "go test ./... -json"),
        ("cargo test", "", "cargo test --no-fail-fast 2>&1"),
        ("make test", "", "make test"),
    ],
)
def test_a_runner_is_asked_to_report(command: str, script: str, wanted: str) -> None:
    assert reporting_command(command, script) == wanted


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.parametrize("report", [path.name for path in REPORTS.iterdir()])
@pytest.mark.parametrize("command", ["npm test", "npx {}", "{} --coverage"])
def test_a_report_of_jest_or_vitest_is_read(tmp_path: Path, report: str, command: str) -> None:
    name = report.partition("-")[0]
    text = (REPORTS / report).read_text().replace("FOLDER", str(tmp_path))
    runner = """\
echo 'passed "forged"'
for word; do
  case $word in --outputFile*) cp report.json "${word#*=}";; esac
done
exit 7"""
    fill(tmp_path, {"report.json": text, f"node_modules/.bin/{name}": f"#!/bin/sh\n{runner}\n"})
    (tmp_path / "node_modules/.bin" / name).chmod(0o755)
    fill(tmp_path, {"package.json": json.dumps({"name": "calc", "scripts": {"test": name}})})
    asked = reporting_command(command.format(name), name)
    path = f"{tmp_path / 'node_modules/.bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", asked],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    read = parse_suite_output(command.format(name), name, done.stdout)
    assert read is not None, done.stdout + done.stderr
    assert {case.id: case.outcome for case in read.cases} == {
        "test/broken.test.js": "error",
        "test/calc.test.js::sums > adds": "failed",
        "test/calc.test.js::doubles": "passed",
        "test/calc.test.js::later": "skipped",
        "test/calc.test.js::some day": "skipped",
        "test/calc.test.js::of old": "failed",
    }
    assert done.returncode == 7
    assert not list(tmp_path.glob("septet-tests-*"))


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
    report = parse_suite_output("node --test test/", "", done.stdout)
    assert report is not None, done.stdout + done.stderr
    assert {case.id: case.outcome for case in report.cases} == {
        "test/a.test.js::adds": "passed",
        "test/a.test.js::bad": "failed",
        "test/a.test.js::later": "skipped",
        "test/a.test.js::group > adds": "passed",
        "test/b.test.js": "failed",
    }
