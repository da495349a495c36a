"""What pytest said: only its own closing summary counts."""

from septet.domain.pytest_report import TestReport, parse_report

OUTPUT = """\
PASSED test_a.py::test_fake - printed by the program
=========================== short test summary info ============================
PASSED test_a.py::test_one
PASSED test_a.py::test_many[a b]
PASSED sub/test_b.py::TestB::test_two
FAILED test_a.py::test_bad - assert 1 == 2
ERROR test_c.py - ModuleNotFoundError: No module named 'c'
3 passed, 1 failed, 1 error in 0.10s
"""


def test_passed_and_failed_come_from_the_last_summary() -> None:
    assert parse_report(OUTPUT) == TestReport(
        passed=("test_a.py::test_one", "test_a.py::test_many[a b]", "sub/test_b.py::TestB::test_two"),
        failed=("test_a.py::test_bad", "test_c.py"),
    )


def test_without_a_summary_nothing_ran() -> None:
    assert parse_report("PASSED test_a.py::test_fake\n") == TestReport()


def test_a_target_covers_a_file_a_class_and_parametrised_cases() -> None:
    report = parse_report(OUTPUT)
    assert report.about("test_a.py::test_many").passed == ("test_a.py::test_many[a b]",)
    assert report.about("sub").passed == ("sub/test_b.py::TestB::test_two",)
    assert report.about("sub/test_b.py::TestB").passed == ("sub/test_b.py::TestB::test_two",)
    assert report.about("test_a.py").failed == ("test_a.py::test_bad",)
    assert report.about("test_a.py::test_on") == TestReport()
