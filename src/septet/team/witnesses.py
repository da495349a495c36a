"""Witnesses: examples that the coder cannot know, by which somebody else says what the goal wants. Pure."""

import ast
from collections.abc import Iterable, Iterator

import msgspec

from septet.domain.events import SpecialCase
from septet.domain.plans import Check, CommandSucceeds, ExampleHolds, Requirement, check_text, is_held
from septet.domain.special_cases import SpecialCases
from septet.domain.state import State
from septet.team.baseline import run_for


def special_case_text(case: SpecialCase) -> str:
    return (
        f"{case.place} is there for what is tested only: without it {case.call} {gives(case.without)}, not "
        f"{case.gives}; make it general, or challenge the check"
    )


def gives(outcome: str) -> str:
    return outcome if outcome.startswith(("raises ", "does not")) else f"gives {outcome}"


def open_special_cases(state: State, item: Requirement) -> list[SpecialCase]:
    """Special cases of a requirement that nobody who knows the goal confirms by an example that is held back.

    Where nobody can be asked, a list of cases is not refused, but said: rules have exceptions, lists are cases.
    """
    found = state.work.evidence.get(item.id)
    special = found.special if found is not None and found.passed else ()
    waits = can_ask_for_examples(state)
    return [one for one in special if (one.general or waits) and not is_witnessed(state, one)]


def can_ask_for_examples(state: State) -> bool:
    """Whether a planner can be asked what the goal says of an input."""
    planner = state.team.member("planner")
    return planner is not None and planner.form != "small"


def confirming_checks(state: State) -> Iterator[tuple[Requirement, Check]]:
    """What is held back, has passed and was never told to the coder."""
    for item in state.plan.items:
        found = state.work.evidence.get(item.id)
        is_secret = is_held(item.check) and check_text(item.check) not in state.plan.told
        if is_secret and found is not None and found.passed:
            yield item, item.check


def is_witnessed(state: State, case: SpecialCase) -> bool:
    """Whether an example of the same call, which the coder has not seen, gives what the program gives."""
    return any(is_example_of(check, case.call) for _, check in confirming_checks(state))


def is_example_of(check: Check, call: str) -> bool:
    """Whether a check makes this call and looks at what it gives."""
    if isinstance(check, ExampleHolds):
        return is_same_call(check.call, call)
    return isinstance(check, CommandSucceeds) and bool(check.prints) and makes_call(check.command, call)


def is_same_call(one: str, other: str) -> bool:
    return ast.unparse(ast.parse(one)) == ast.unparse(ast.parse(other))


def makes_call(command: str, call: str) -> bool:
    """Whether a command has the call of a method in it, of whatever object."""
    path, _, given = call.partition("(")
    made = f".{path.rpartition('.')[2]}({given}"
    return made.replace('"', "'") in command.replace('\\"', "'").replace('"', "'")


def special_cases_found(state: State) -> SpecialCases:
    """What the run that looks for special cases has found in the newest version; nothing where there was none."""
    run = run_for(state, "special cases")
    return msgspec.json.decode(run.result.stdout, type=SpecialCases) if run else SpecialCases()


def function_of(call: str) -> str:
    """`app.double` of `app.double(21)`."""
    return call.partition("(")[0]


def is_held_back(state: State, item: Requirement, calls: Iterable[str]) -> bool:
    """Whether something is held back that shows a requirement, and that is none of the calls that its tests make.

    It shows it if it is a check of the same requirement, or an example of a function that the tests call.
    """
    tested = list(calls)
    functions = set(map(function_of, tested))
    return any(
        (one.text == item.text or (isinstance(check, ExampleHolds) and function_of(check.call) in functions))
        and not any(is_example_of(check, call) for call in tested)
        for one, check in confirming_checks(state)
    )
