"""Names requirements of which less is shown than it seems, by what was asked, answered and written. Pure."""

from septet.common.text import join_words
from septet.domain.files import is_test, main_of
from septet.domain.plans import (
    CommandSucceeds,
    FileExists,
    HoldableCheck,
    PictureExists,
    Requirement,
    check_text,
    gives_input,
)
from septet.domain.state import State
from septet.team.baseline import run_for
from septet.team.confirmations import readable_items
from septet.team.evidence import (
    author_of,
    evidence_report,
    is_judged,
)
from septet.team.shortcuts import is_echo, is_told_apart
from septet.team.witnesses import (
    is_witnessed,
)

DATA_SUFFIXES = frozenset(
    ".csv .tsv .json .jsonl .txt .log .out .xml .svg .db .sqlite .dat .bin .ics .vcf .pdf".split()
)


def reservations(state: State) -> list[str]:
    """What a person should know who reads that the work is done: what only its author showed or knew, or a judge."""
    own = [line.item.id for line in evidence_report(state) if line.is_met and line.own_tests]
    evidence = [state.work.evidence.get(item.id) for item in state.plan.items]
    written = [one.item for one in evidence if one is not None and one.passed and one.written]
    known = [item.id for item in state.plan.items if item.id not in written and is_known_example(state, item)]
    signs = dict.fromkeys(sign for one in evidence if one is not None and one.passed for sign in one.signs)
    found = {
        "only the coder's own tests show {}": own,
        "the program has the text that {} looks for written in it": written,
        "the coder knew every example of {}": known,
        "the coder could read every input that shows {}, and none is held back": readable_items(state),
        "only the reviewer's judgement shows {}": judged_alone(state),
        "the text of {} is in other answers, too": mistaken_items(state),
        "the result of {} is in what the program is given": echoed_items(state),
        "nothing but the coder's own script shows {}": scripted_items(state),
        "the file of {} was made by no run, the coder wrote it": written_files(state),
        "the program lists the cases of {} and no others": listed_cases(state),
    }
    return [*(text.format(join_words(items)) for text, items in found.items() if items), *signs]


def judged_alone(state: State) -> list[str]:
    """Requirements and wishes that the reviewer has accepted and no check shows."""
    shown = {item.text for item in state.plan.items if not is_judged(state, item)}
    checked = {wish.id for wish in state.plan.wishes if wish.checked}
    return [
        line.item.id
        for line in evidence_report(state)
        if line.is_met
        and line.author == "reviewer"
        and line.item.text not in shown
        and line.item.id not in checked
    ]


def is_known_example(state: State, item: Requirement) -> bool:
    """Whether nothing shows the requirement but inputs that the planner showed to the coder, and the coder's tests."""
    checks = [one.check for one in state.plan.items if one.text == item.text]
    others = [one for one in checks if author_of(state, one) != "coder"]
    return bool(others) and all(
        isinstance(one, HoldableCheck)
        and gives_input(one)
        and (not one.held or check_text(one) in state.plan.told)
        and author_of(state, one) in ("planner", "manager")
        for one in others
    )


def listed_cases(state: State) -> list[str]:
    """Requirements shown by a list of just the cases that are tested, where nobody could be asked."""
    return [
        item.id
        for item in state.plan.items
        if (found := state.work.evidence.get(item.id)) is not None
        and found.passed
        and any(not is_witnessed(state, one) for one in found.special)
    ]


def mistaken_items(state: State) -> list[str]:
    """Checks whose texts the program gives to each other's input: it may give all of them to everybody."""
    runs = {item.id: run_for(state, "check", item.id) for item in state.plan.items}
    answers = {
        item.check: run.result.stdout
        for item in state.plan.items
        if (run := runs[item.id]) is not None
        and isinstance(item.check, HoldableCheck)
        and gives_input(item.check)
    }
    checks = [(item.id, item.check) for item in state.plan.items if isinstance(item.check, HoldableCheck)]
    return [one for one, check in checks if not is_told_apart(answers, check)]


def echoed_items(state: State) -> list[str]:
    """Requirements whose every check looks for a part of its own input."""
    items = [
        item for item in state.plan.items if isinstance(item.check, HoldableCheck) and is_echo(item.check)
    ]
    echoed = {item.id for item in items}
    return [
        item.id
        for item in items
        if all(one.id in echoed for one in state.plan.items if one.text == item.text)
    ]


def scripted_items(state: State) -> list[str]:
    """Commands that start another file of the coder than the program, and give it nothing: it says what it likes."""
    written = {file.path for file in state.work.files}
    main = main_of(
        state.work.files, state.plan.current.run if state.plan.current else "", state.team.languages
    )
    return [
        item.id
        for item in state.plan.items
        if isinstance(item.check, CommandSucceeds)
        and not gives_input(item.check)
        and (names := started_files(item.check.command) & written)
        and main is not None
        and main.path not in names
        and not any(map(is_test, names))
    ]


def started_files(command: str) -> set[str]:
    """The files that a command may start: `python -m app` starts app.py or app/__main__.py."""
    words = [word.removeprefix("./") for word in command.split()]
    modules = [words[place + 1] for place, word in enumerate(words[:-1]) if word == "-m"]
    named = [f"{one.replace('.', '/')}{end}" for one in modules for end in (".py", "/__main__.py")]
    makefile = ["Makefile", "makefile"] if words[:1] == ["make"] else []
    return {*words, *named, *makefile}


def written_files(state: State) -> list[str]:
    """Files and pictures that a program should make, and that nothing but the coder's hand has made."""
    is_run = any(run.purpose == "run" for run in state.work.runs)
    made = {change.path for run in state.work.runs for change in run.result.changes}
    written = {file.path for file in state.work.files} - made
    return [
        item.id
        for item in state.plan.items
        if isinstance(item.check, FileExists | PictureExists)
        and item.check.path in written
        and (isinstance(item.check, PictureExists) or (is_run and is_data(item.check.path)))
    ]


def is_data(path: str) -> bool:
    """Whether people seldom write such a file themselves: no documentation, settings, pages or programs."""
    name = path.rpartition("/")[2]
    return f".{name.rpartition('.')[2]}" in DATA_SUFFIXES and not name.startswith(("requirements", "LICENSE"))
