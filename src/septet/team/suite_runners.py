"""Test runners of other languages: the command that makes each report every test, and the parser of its report.

Of any other command, and of output without a report, only the exit code counts.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from septet.common.values import Value
from septet.domain.pytest_report import MAX_CASES, Outcome, TestCase, TestReport

REPORTER = """
export default async function* (source) {
  const names = [];
  const comment = (text) => String(text).trimEnd().split('\\n').map((line) => '# ' + line + '\\n').join('');
  for await (const { type, data } of source) {
    if (type === 'test:start') names[data.nesting] = data.name;
    if (type === 'test:stdout' || type === 'test:stderr') yield comment(data.message);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const passed = type === 'test:pass';
    if (passed && data.details.type === 'suite') continue;
    const path = data.file ? data.file.replace(process.cwd() + '/', '') : '';
    const name = [...names.slice(0, data.nesting), data.name].join(' > ');
    const id = path && name.endsWith(path) ? path : [path, name].filter(Boolean).join('::');
    const skipped = data.skip !== undefined || data.todo !== undefined;
    yield (skipped ? 'skipped ' : passed ? 'passed ' : 'failed ') + JSON.stringify(id) + '\\n';
    const error = data.details.error;
    if (!passed && error) yield comment((error.cause && error.cause.stack) || error.stack || error);
  }
}
"""
"""Node's own reporters do not say which file a test is in."""
REPORTER_URL = f"data:text/javascript,{quote(' '.join(map(str.strip, REPORTER.splitlines())), safe='')}"
NODE_OPTIONS = f"--test-reporter={REPORTER_URL} --test-reporter-destination=stdout"
JSON_REPORT = '"${TMPDIR:-/tmp}/septet-tests-$$.json"'
"""A file that Jest and Vitest write: what they print as JSON differs by version, and tests print there too."""
PRINTER = """
const report = JSON.parse(require("fs").readFileSync(process.argv[1]));
const words = {passed: "passed", failed: "failed"};
for (const {name, status, assertionResults: cases} of report.testResults) {
  const path = name.replace(process.cwd() + "/", "");
  if (status === "failed" && !cases.length) console.log("error " + JSON.stringify(path));
  for (const one of cases) {
    const id = path + "::" + [...one.ancestorTitles, one.title].join(" > ");
    console.log((words[one.status] || "skipped") + " " + JSON.stringify(id));
  }
}
"""
PRINT_REPORT = (
    f" >&2; code=$?; test -f {JSON_REPORT} &&"
    f" node -e '{' '.join(map(str.strip, PRINTER.splitlines()))}' {JSON_REPORT}; rm -f {JSON_REPORT}; exit $code"
)
"""Follows the runner's command, and prints each test on a line, as the reporter for Node does."""
SHELL_SYNTAX = re.compile(r"[&|;<>$`\n]")
"""Characters of a shell command that is more than one plain call."""
NODE_LINE = re.compile(r'^(passed|failed|skipped|error) (".*")$', re.MULTILINE)
CARGO_LINE = re.compile(
    r"^ +Running (?:unittests )?(?P<file>\S+) \(|^ +(?P<doc>Doc-tests) |^(?P<ended>test result:)"
    r"|^running (?P<count>\d+) tests?$|^test (?P<test>.+?) \.\.\. (?P<outcome>ok|FAILED|ignored)",
    re.MULTILINE,
)
OUTCOMES: dict[str, Outcome] = {
    "passed": "passed",
    "pass": "passed",
    "ok": "passed",
    "failed": "failed",
    "fail": "failed",
    "FAILED": "failed",
}
"""Any other word means skipped."""


class GoEvent(Value, rename="pascal"):
    action: str
    package: str = ""
    test: str = ""


class TestRunner(NamedTuple):
    """`name` matches a command that calls the runner; `command` and `npm` are templates that add the report options."""

    __test__ = False

    name: re.Pattern[str]
    command: str
    npm: str
    read: Callable[[str], Iterable[TestCase]]


def node_cases(output: str) -> Iterator[TestCase]:
    for word, name in NODE_LINE.findall(output):
        if word == "error":
            yield TestCase(id=json.loads(name), outcome="error", phase="collect")
        else:
            yield TestCase(id=json.loads(name), outcome=OUTCOMES.get(word, "skipped"))


def go_cases(output: str) -> Iterator[TestCase]:
    decoder = msgspec.json.Decoder(GoEvent)
    events = [decoder.decode(line) for line in output.splitlines() if line.startswith("{")]
    tested = {event.package for event in events if event.test}
    for event in events:
        if event.action in ("pass", "fail", "skip") and event.test:
            yield TestCase(id=f"{event.package}::{event.test}", outcome=OUTCOMES.get(event.action, "skipped"))
        elif event.action == "fail" and event.package and event.package not in tested:
            yield TestCase(id=event.package, outcome="error", phase="collect")


def cargo_cases(output: str) -> Iterator[TestCase]:
    """Read as many test lines as the runner announced: what follows may be the output of a failed test."""
    path, room = "", 0
    for found in CARGO_LINE.finditer(output):
        path = found["file"] or found["doc"] or path
        room = int(found["count"]) if found["count"] else 0 if found["ended"] else room
        if found["test"] and room > 0:
            room -= 1
            yield TestCase(id=f"{path}::{found['test']}", outcome=OUTCOMES.get(found["outcome"], "skipped"))


JEST = "--json --outputFile={report}{printed}"
VITEST = "--run --reporter=json --reporter=default --outputFile.json={report}{printed}"
RUNNERS = (
    TestRunner(
        re.compile(r"node\s+(?=.*--test\b)"),
        "NODE_OPTIONS={options} {}",
        "NODE_OPTIONS={options} {}",
        node_cases,
    ),
    TestRunner(re.compile(r"(npx\s+)?jest\b"), f"{{}} {JEST}", f"{{}} -- {JEST}", node_cases),
    TestRunner(re.compile(r"(npx\s+)?vitest\b"), f"{{}} {VITEST}", f"{{}} -- {VITEST}", node_cases),
    TestRunner(re.compile(r"go test\b(?!.*-json)"), "{} -json", "", go_cases),
    TestRunner(re.compile(r"cargo test\b(?!.* -- )"), "{} --no-fail-fast 2>&1", "", cargo_cases),
)


def find_suite_runner(command: str, script: str) -> TestRunner | None:
    """Find the runner that the command calls, or for `npm test` the one that the project's `test` script calls."""
    text = script if is_npm(command) else command
    plain = "" if SHELL_SYNTAX.search(text) else text.strip()
    return next((one for one in RUNNERS if one.name.match(plain)), None)


def is_npm(command: str) -> bool:
    return command.split() in (["npm", "test"], ["npm", "run", "test"])


def reporting_command(command: str, script: str) -> str:
    """Add the options that make the runner report; a command of an unknown runner is not changed."""
    runner = find_suite_runner(command, script)
    if runner is None:
        return command
    form = runner.npm if is_npm(command) else runner.command
    given = {"options": f"'{NODE_OPTIONS}'", "report": JSON_REPORT, "printed": PRINT_REPORT}
    return form.format(command, **given) if form else command


def parse_suite_output(command: str, script: str, output: str) -> TestReport | None:
    """Read the outcome of each test; None if the output has no report."""
    runner = find_suite_runner(command, script)
    try:
        cases = tuple(runner.read(output)) if runner else ()
    except (msgspec.MsgspecError, ValueError):
        return None
    return TestReport(cases=cases[:MAX_CASES], complete=len(cases) <= MAX_CASES) if cases else None


def script_of_package(package: bytes | None) -> str:
    """The command of `npm test` in the project's package.json."""
    try:
        return str(json.loads(package or b"{}").get("scripts", {}).get("test", ""))
    except (ValueError, AttributeError):
        return ""
