"""What pytest said, by its closing summary: which tests passed and which did not."""

import re

from septet.domain.values import Value

SUMMARY = re.compile(r"^=+ short test summary info =+$", re.MULTILINE)
LINE = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) (.+?)(?: - .*)?$", re.MULTILINE)

PYTEST = ("python", "-m", "pytest", "-q", "-rA", "--tb=short", "--no-header", "--color=no")


class TestReport(Value):
    __test__ = False  # not a test itself, whatever pytest thinks of the name

    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    def about(self, target: str) -> "TestReport":
        """The part of it that a path or node id names."""
        return TestReport(
            passed=tuple(test for test in self.passed if covers(target, test)),
            failed=tuple(test for test in self.failed if covers(target, test)),
        )


def parse_report(stdout: str) -> TestReport:
    """Read the last summary; text that a program printed before it does not count."""
    starts = [found.end() for found in SUMMARY.finditer(stdout)]
    if not starts:
        return TestReport()
    lines = LINE.findall(stdout, starts[-1])
    return TestReport(
        passed=tuple(test for word, test in lines if word in {"PASSED", "XFAIL"}),
        failed=tuple(test for word, test in lines if word in {"FAILED", "ERROR", "XPASS"}),
    )


def covers(target: str, test: str) -> bool:
    """`test_a.py` covers all of its tests, `test_a.py::test_b` also its parametrised cases."""
    return test == target or test.startswith((target + "::", target + "[", target.rstrip("/") + "/"))
