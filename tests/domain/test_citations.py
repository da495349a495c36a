"""A number in an answer is one that a program printed, or it is not said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.citations import ScriptOutput, Source, separate_numbers, trace_numbers

OUTPUTS = [
    ScriptOutput(script="a.py", text="rows: 9500\nrate 3.140 %\n"),
    ScriptOutput(script="b.py", text="x -5\nrows 7\n"),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("There are 9,500 rows.", ["9,500"]),
        ("3.5 % and -2 and 1e3", ["3.5", "-2", "1e3"]),
        ("see ctr_2.py, v3, 10:30, 2023-05-01 and a/5", []),
        ("(12), [13]; 14.", ["12", "13", "14"]),
        ("5-10 of 3/5, at /tmp/7/x", ["5", "10", "3", "5"]),
    ],
)
def test_numbers_stand_alone(text: str, found: list[str]) -> None:
    assert separate_numbers(text) == found


def test_each_number_gets_its_script_and_line() -> None:
    found = trace_numbers("9,500 rows at 3.14 %, and -5.", OUTPUTS)
    assert found.sources == (
        Source(number="9,500", script="a.py", line=1, text="rows: 9500"),
        Source(number="3.14", script="a.py", line=2, text="rate 3.140 %"),
        Source(number="-5", script="b.py", line=1, text="x -5"),
    )
    assert found.without_source == ()


def test_what_nobody_printed_is_found() -> None:
    assert trace_numbers("9501 rows, 3.1 %, 9501 again", OUTPUTS).without_source == ("9501", "3.1")


def test_numbers_of_the_question_and_of_a_list_need_no_source() -> None:
    assert (
        trace_numbers("1. the top 5\n2. of 3 sites", OUTPUTS, given="the top 5 of 3 sites?").without_source
        == ()
    )


@given(st.integers(-(10**9), 10**9))
def test_a_printed_number_is_always_found(number: int) -> None:
    output = ScriptOutput(script="s.py", text=f"n {number}\n")
    assert trace_numbers(f"It is {number:,}.", [output]).without_source == ()
    assert trace_numbers(f"It is {number + 1}.", [output]).without_source != ()


@given(st.text(), st.text())
def test_any_text_can_be_traced(answer: str, output: str) -> None:
    trace_numbers(answer, [ScriptOutput(script="s.py", text=output)])


def test_a_label_is_no_amount() -> None:
    outputs = [ScriptOutput(script="a.py", text="hour 04: 9 clicks")]
    assert trace_numbers("about 4 %", outputs).without_source == ("4",)
    assert trace_numbers("the hour 04 has 9", outputs).without_source == ()
    assert trace_numbers("03.9 % in hour 04", outputs).without_source == ("03.9",)
