"""What several programs told becomes outcomes: what is missing after a timeout is not met and has no value."""

from septet.agents.trials import Questions, Told, outcomes_of
from septet.team.goal_examples import stated_examples

STATED = tuple(stated_examples("f(1) == 1, f(2) == 4"))
VOTES = tuple(stated_examples("f(3) == 9"))
ASKED = Questions(checks=STATED, votes=VOTES, calls=("f(4)", "f(5)"))


def test_what_a_program_told_is_told_apart_by_what_was_asked() -> None:
    told: Told = [
        ["check", True, "v:1"],
        ["check", "True", "v:5"],
        ["check", True, "v:9"],
        ["call", "v:16"],
        ["call", "e:x"],
    ]
    found = outcomes_of(told, ASKED)
    assert (found.checks, found.got) == ((True, False), ("v:1", "v:5"))
    assert (found.votes, found.probes) == ((True,), ("v:16", "e:x"))


def test_what_is_missing_was_not_met_and_has_no_value() -> None:
    found = outcomes_of([["check", True, "v:1"], ["call", "v:16"]], ASKED)
    assert (found.checks, found.got, found.votes) == ((True, False), ("v:1", "t:"), (False,))
    assert found.probes == ("v:16", "t:")
    nothing = outcomes_of([], ASKED)
    assert (nothing.checks, nothing.votes, nothing.probes) == ((False, False), (False,), ("t:", "t:"))
