"""Which of several programs: what counts, and in which order."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from septet.team.agreement import (
    ALIKE,
    FEWEST_DRAWS,
    MOST_AGREED,
    MOST_DRAWS,
    NEARLY_ALL,
    Outcomes,
    ProgramChoice,
    agreed_examples,
    believed_votes,
    choose,
    disputed_call,
    is_believed,
    is_plain,
    rival_question,
    undisputed,
)

NEAR = [True, True, False]


def outcomes(*probes: str, checks: Sequence[bool] = (), votes: Sequence[bool] = ()) -> Outcomes:
    return Outcomes(probes=probes, checks=tuple(checks), votes=tuple(votes))


def test_what_the_goal_states_comes_before_what_most_programs_do() -> None:
    common = outcomes("v:1", "v:1", "v:1", checks=[False])
    right = outcomes("v:2", "v:2", "v:2", checks=[True])
    choice = choose([common, common, common, right], NEAR)
    assert choice is not None
    assert (choice.place, choice.met, choice.peers, choice.alike) == (3, True, 1, 1)


def test_without_examples_the_largest_group_comes_before_the_one_in_the_middle() -> None:
    near = [True] * 4
    group, one = outcomes("v:1", "v:1", "v:1", "v:0"), outcomes("v:0", "v:0", "v:1", "v:1")
    other, middle = outcomes("v:0", "v:1", "v:0", "v:1"), outcomes("v:0", "v:1", "v:1", "v:0")
    programs = [group, group, group, one, one, other, other, middle]
    by_support, by_group = choose(programs, near), choose(programs, near, by_group=True)
    assert by_support is not None
    assert by_group is not None
    assert (by_support.place, by_group.place) == (7, 0)
    assert (by_group.alike, by_group.rivals) == (3, 2)


def test_the_simplest_call_on_which_the_strongest_rival_differs_is_the_one_in_dispute() -> None:
    calls, near = ["f([1, 2])", "f([1])", "f()", "f(2)"], [True, True, False, True]
    mine, rival, stray = (
        outcomes("v:1", "v:1", "v:1", "v:1"),
        outcomes("v:2", "v:2", "v:2", "e:ValueError"),
        outcomes("v:3", "v:1", "v:1", "v:3"),
    )
    programs = [mine, mine, mine, rival, rival, stray]
    choice = choose(programs, near, by_group=True)
    assert choice is not None
    assert disputed_call(calls, programs, choice, near) == "f([1])"
    assert disputed_call(calls, programs, choice, [True, False, False, True]) == "f([1, 2])"
    assert disputed_call(calls, programs[:3], choice, near) == ""


def test_among_programs_that_meet_the_examples_the_one_most_others_agree_with_is_taken() -> None:
    odd = outcomes("v:1", "v:9", "v:1", checks=[True])
    usual = outcomes("v:1", "v:2", "v:1", checks=[True])
    choice = choose([odd, usual, usual], NEAR)
    assert choice is not None
    assert (choice.place, choice.alike, choice.peers, choice.rivals) == (1, 2, 3, 1)


def test_invented_examples_rank_equals_and_veto_nothing() -> None:
    lonely = outcomes("v:1", "v:2", "v:3", votes=[True, True])
    usual = outcomes("v:1", "v:3", "v:3", votes=[False, False])
    choice = choose([usual, usual, lonely], NEAR)
    assert choice is not None
    assert choice.place == 0
    tie = choose([outcomes("e:", "e:", "e:", votes=[False]), outcomes("e:", "e:", "e:", votes=[True])], NEAR)
    assert tie is not None
    assert tie.place == 1


def test_of_equals_the_first_is_taken() -> None:
    same = outcomes("v:1", "v:2", "v:3", checks=[True])
    choice = choose([same, same, same], NEAR)
    assert choice is not None
    assert (choice.place, choice.support) == (0, 1.0)


def test_a_far_input_alone_does_not_part_programs() -> None:
    one, other = outcomes("v:1", "v:2", "e:ValueError"), outcomes("v:1", "v:2", "v:0")
    choice = choose([one, other], NEAR)
    assert choice is not None
    assert choice.alike == 2
    assert choice.support < 1


def test_what_a_working_program_refuses_is_no_question() -> None:
    lenient, strict = outcomes("v:1", "v:''", "v:0"), outcomes("v:1", "e:ValueError", "e:TypeError")
    assert undisputed([lenient, strict], NEAR) == [True, True, True], (
        "one of two near values is not most of them"
    )
    near = [True] * 3
    strict = outcomes("v:1", "v:2", "e:ValueError")
    assert undisputed([lenient, lenient, strict], near) == [True, True, False]
    assert undisputed([lenient, outcomes("v:1", "v:2", "e:IndexError")], near) == [True, True, True]
    assert undisputed([lenient, outcomes("e:TypeError", "e:TypeError", "e:TypeError")], near) == [True] * 3


def test_votes_are_believed_when_half_of_the_equals_meet_them() -> None:
    one = outcomes("v:1", checks=[True], votes=[True, True, False])
    other = outcomes("v:1", checks=[True], votes=[True, False, True])
    third = outcomes("v:1", checks=[True], votes=[True, False, True])
    assert believed_votes([one, other, third], one) == [0]


def test_the_question_is_where_the_chosen_and_its_strongest_rival_differ() -> None:
    programs = [outcomes("v:1", "v:0", "v:0"), outcomes("v:1", "v:None", "v:0")]
    choice = choose(programs, NEAR)
    assert choice is not None
    assert (
        rival_question(["f(1)", "f([])", "f(2)"], programs, choice, NEAR)
        == "f([]) gives 0 here and None elsewhere"
    )
    assert rival_question(["f(1)", "f([])", "f(2)"], programs[:1], choice, NEAR) == ""


@pytest.mark.parametrize("count", [0, 1])
def test_none_is_no_choice_and_one_is_its_own(count: int) -> None:
    choice = choose([outcomes("v:1", "v:1", "v:1")] * count, NEAR)
    assert (choice is None) == (count == 0)


@given(told=st.lists(st.tuples(*[st.sampled_from(["v:1", "v:2", "e:X", "t:"])] * 3), min_size=1, max_size=6))
def test_any_outcomes_give_a_choice_that_does_not_depend_on_chance(told: list[tuple[str, str, str]]) -> None:
    programs = [outcomes(*one) for one in told]
    first = choose(programs, NEAR)
    assert first is not None
    assert first == choose(programs, NEAR)
    assert 1 <= first.alike <= first.peers
    assert first.rivals <= first.peers - first.alike
    assert (first.rivals == 0) is (first.alike == first.peers)


def test_examples_that_all_agree_on_are_near_plain_and_different() -> None:
    calls = ["f(1)", "f(2)", "f(3)", "f(4)", "f(5)", "f(6)"]
    near = [True, True, True, True, True, False]
    one = outcomes("v:1", "v:1", "v:[1,'a']", "v:(1)", "v:4", "v:7")
    other = outcomes("v:1", "v:1", "v:[1,'a']", "v:(1)", "v:5", "v:7")
    assert agreed_examples(calls, [one, other], one, near) == ["f(1) == 1", "f(3) == [1,'a']"]
    worse = outcomes(*one.probes, checks=[False])
    assert agreed_examples(calls, [one, worse], one, near)[:1] == ["f(1) == 1"]


def test_so_many_agreed_examples_are_enough() -> None:
    calls = [f"f({n})" for n in range(20)]
    one = outcomes(*(f"v:{n}" for n in range(20)))
    assert len(agreed_examples(calls, [one], one, [True] * 20)) == MOST_AGREED


@pytest.mark.parametrize(
    ("outcome", "plain"),
    [
        ("v:1", True),
        ("v:-2", True),
        ("v:'a'", True),
        ("v:True", True),
        ("v:[1,[2,'x']]", True),
        ("v:1.5", False),
        ("v:(1,2)", False),
        ("v:[(1)]", False),
        ("v:{1,2}", False),
        ("v:None", False),
        ("v:<map>", False),
        ("v:12…ab", False),
        ("e:ValueError", False),
        ("t:", False),
    ],
)
def test_only_whole_numbers_texts_and_lists_are_written_into_tests(outcome: str, plain: bool) -> None:
    assert is_plain(outcome) is plain


BELIEVED = ProgramChoice(place=0, met=True, peers=ALIKE, alike=ALIKE, rivals=0, support=1.0)


@pytest.mark.parametrize(
    ("choice", "drawn", "has_examples", "believed"),
    [
        (BELIEVED, FEWEST_DRAWS, True, True),
        (BELIEVED, FEWEST_DRAWS - 1, True, False),
        (BELIEVED, FEWEST_DRAWS - 1, False, True),
        (replace(BELIEVED, met=False), FEWEST_DRAWS, True, False),
        (replace(BELIEVED, alike=ALIKE - 1), FEWEST_DRAWS, True, False),
        (replace(BELIEVED, support=0.999), MOST_DRAWS - 1, True, False),
        (replace(BELIEVED, support=0.999), MOST_DRAWS, True, True),
        (replace(BELIEVED, support=NEARLY_ALL), MOST_DRAWS, True, True),
        (replace(BELIEVED, support=0.99), MOST_DRAWS, True, False),
        (replace(BELIEVED, support=0.0, peers=8, alike=4, rivals=1), MOST_DRAWS, False, True),
        (replace(BELIEVED, support=0.0, peers=9, alike=4, rivals=1), MOST_DRAWS, False, False),
        (replace(BELIEVED, support=0.0, peers=6, alike=4, rivals=2), MOST_DRAWS, False, False),
        (replace(BELIEVED, support=0.0, peers=8, alike=4, rivals=1), MOST_DRAWS - 1, False, False),
    ],
)
def test_a_program_is_believed_if_it_meets_the_examples_and_enough_others_agree_with_it(
    choice: ProgramChoice, drawn: int, has_examples: bool, believed: bool
) -> None:
    assert is_believed(choice, drawn, has_examples) is believed
