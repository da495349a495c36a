"""The result of a chat as data and as text: status, evidence table, spending, summary."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from textwrap import fill, wrap

from septet.common.text import clip, pluralize
from septet.common.values import Value
from septet.domain.events import ChatEnded, RunFinished, RunStarted
from septet.domain.messages import Usage
from septet.domain.plans import check_text
from septet.domain.runs import CONTROLS, Network, Purpose
from septet.domain.state import Spending, State
from septet.domain.teams import Allowance, EndReason, TeamSpec
from septet.team.acceptance import OUTCOME_MARK, call_outcome, outcome_text
from septet.team.baseline import suite_notes
from septet.team.budgets import allowance, own_spending
from septet.team.evidence import (
    EvidenceLine,
    control_result,
    evidence_report,
    shortcomings,
    tests_outcome,
)
from septet.team.layouts import products_of
from septet.team.questions import Question, open_ask, question
from septet.team.witnesses import special_cases_found
from septet.ways.endings import FINISHED, ending
from septet.ways.table import way_of


def spending_text(state: State) -> str:
    """What the whole chat used: answers, and tokens and cost if they are known."""
    limits = Allowance(tokens=state.budget.tokens, cost=state.budget.cost)
    return " · ".join(
        [pluralize(state.spending.total.answers, "answer"), *measures(state.spending.total, limits)]
    )


def member_spending_lines(state: State) -> list[str]:
    """One line for each member with counted tokens, with its own budget."""
    known = {name: used for name, used in state.spending.members.items() if used.usage.total}
    width = max(map(len, known), default=0)
    return [
        f"  {name:<{width}}  {pluralize(used.answers, 'answer')} · {' · '.join(measures(used, allowance(state, name)))}"
        for name, used in known.items()
    ]


def turn_spending_text(state: State) -> str:
    """How much of its own budget the current speaker has used."""
    speaker = state.floor.speaker
    limits, used = allowance(state, speaker), own_spending(state, speaker)
    figures = [
        f"{used.usage.total}/{limits.tokens} tokens" if limits.tokens is not None else "",
        f"${used.cost:.4f}/{limits.cost:g}" if limits.cost is not None else "",
        f"{used.seconds:.0f}/{limits.seconds:g} s" if limits.seconds is not None else "",
    ]
    shown = " ".join(filter(None, figures))
    return f"{speaker} {shown}" if shown else ""


def time_text(state: State, meanwhile: float = 0.0) -> str:
    """Seconds that models and programs took, and their limit; `meanwhile` is not in the log yet."""
    limit = f"/{state.budget.seconds:g}" if state.budget.seconds is not None else ""
    return f"{state.spending.seconds + meanwhile:.0f}{limit} s"


def measures(used: Spending, limits: Allowance) -> list[str]:
    usage = used.usage
    if not usage.total:
        return []
    cached = f" ({usage.cached} cached)" if usage.cached else ""
    tokens = f" of {limits.tokens}" if limits.tokens is not None else ""
    cost = f" of {limits.cost:g}" if limits.cost is not None else ""
    about = "about " if usage.estimated else ""
    return [f"{about}{usage.prompt} + {usage.completion} tokens{cached}{tokens}", f"${used.cost:.4f}{cost}"]


class ReportLine(Value, omit_defaults=False):
    item: str
    requirement: str
    check: str
    met: bool
    evidence: str
    version: int
    author: str = ""
    """Who wrote what shows it: the person, the repository, the planner, the coder."""
    own_tests: bool = False
    """Nothing but tests of the coder's own shows the requirement."""


class ProofCost(Value, omit_defaults=False):
    """What the runs of the newest version took: the program, its tests and checks, and those that examine them."""

    checks: int
    check_seconds: float
    controls: int
    control_seconds: float
    untried: int = 0
    """Places of the program at which nothing looked for special cases, because the checks are too short for that."""


class Result(Value, omit_defaults=False):
    """`status` is how the chat ended, or `unfinished`; `exit_code` is that of the command line.

    `members` is what each member used. `reservations` is what a chat that is done does not show: all checks passed only
    if there are none.
    """

    chat: str
    status: str
    detail: str
    exit_code: int
    versions: int
    workspace: str
    evidence: tuple[ReportLine, ...]
    usage: Usage
    cost: float
    members: Mapping[str, Spending]
    answer: str = ""
    proof: ProofCost | None = None
    reservations: tuple[str, ...] = ()
    type: str = "result"


def result_of(state: State) -> Result:
    number = state.work.version.number if state.work.version else 0
    ended = ending(state)
    status = ended.reason if ended else "unfinished"
    lines = tuple(
        ReportLine(
            item=line.item.id,
            requirement=line.item.text,
            check=check_text(line.item.check),
            met=line.is_met,
            evidence=line.detail,
            version=number,
            author=line.author,
            own_tests=line.own_tests,
        )
        for line in evidence_report(state)
    )
    return Result(
        chat=state.chat,
        status=status,
        detail=ended.detail if ended else state.halted.text if state.halted else "",
        exit_code=0 if status in FINISHED else 4 if status == "challenged" else 3,
        versions=len(state.work.versions),
        workspace=state.workspace,
        evidence=lines,
        usage=state.spending.total.usage,
        cost=state.spending.total.cost,
        members=state.spending.members,
        answer=state.talk.answer.text if state.talk.answer else "",
        proof=proof_cost(state) if state.work.runs else None,
        reservations=known_reservations(state) if status == "done" else (),
    )


def known_reservations(state: State) -> tuple[str, ...]:
    from septet.team.caveats import reservations  # a list of chats that are not done need not load it

    return tuple(reservations(state))


def proof_cost(state: State) -> ProofCost:
    runs = [run for run in state.work.runs if run.purpose != "script"]
    own = [run.result.seconds for run in runs if run.purpose in ("run", "tests", "check")]
    other = [run.result.seconds for run in runs if run.purpose not in ("run", "tests", "check")]
    return ProofCost(
        checks=len(own),
        check_seconds=round(sum(own), 3),
        controls=len(other),
        control_seconds=round(sum(other), 3),
        untried=special_cases_found(state).untried,
    )


ENDINGS: dict[EndReason, str] = {
    "done": "done, all checks passed",
    "accepted": "accepted by the person",
    "claimed": "claimed by {by}, not proven",
    "answered": "answered",
    "rounds": "rounds over",
    "challenged": "check challenged",
    "bound": "stopped unfinished, a bound was reached",
    "no_progress": "stopped unfinished, no progress",
    "error": "stopped unfinished, an error",
    "stopped": "stopped by the person",
}

QUESTION_VERBS = {
    "plan": "approve the plan",
    "review": "look at it",
    "step": "grant a step",
    "packages": "allow packages",
    "ask": "answer a question",
}
TABLE_HEADER = ("", "requirement", "check", "check by", "evidence", "version")


RUN_TITLES: dict[Purpose, str] = {
    "tests alone": "tests without the program",
    "tests as found": "the project's own tests",
    "tests again": "tests that failed, once more",
    "tests on base": "tests without the change",
    "hollow check": "check {about} without a working program",
    "check on base": "check {about} without the change",
    "baseline": "tests before the change",
}
"""What was run, for people; the other purposes say it themselves."""
MUTANT_TITLES = {
    "results": "tests with other results",
    "operators": "tests with other operators",
    "constants": "tests with other constants",
}
WITHOUT_PROGRAM = {
    "pass": "they pass: they prove nothing",
    "fail": "they fail, as they should",
    "unknown": "unknown: the run did not end",
}
"""What the outcome of tests says that were run without the program that they test."""
MUTANT_OUTCOMES = {**WITHOUT_PROGRAM, "pass": "they pass: they do not notice"}


class RunOutcome(Value, omit_defaults=False):
    """How a run ended, as text, and whether that is as it should be."""

    text: str
    good: bool


def run_title(run: RunStarted | RunFinished) -> str:
    """What was run, in words."""
    plain = RUN_TITLES.get(run.purpose, f"{run.purpose} {{about}}".rstrip()).format(about=run.about).rstrip()
    return MUTANT_TITLES.get(run.about, plain) if run.purpose == "tests alone" else plain


def run_outcome(run: RunFinished) -> RunOutcome:
    result, tests = run.result, run.result.tests
    if run.purpose in CONTROLS or run.purpose == "check on base":
        good = run.purpose != "tests alone" or control_result(run) == "fail"
        return RunOutcome(text=control_text(run), good=good)
    good = result.succeeded and (tests is None or (tests_outcome(result) == "pass" and tests.trustworthy))
    return RunOutcome(text=ending_or_counts(run), good=good)


def ending_or_counts(run: RunFinished) -> str:
    """How a run ended: of tests that came to an end their counts, which say more than an exit code."""
    result, report = run.result, run.result.report if run.purpose.startswith("tests") else None
    tests = report if report and report.cases else result.tests
    if tests is None:
        return result.ending
    return tests.counts if result.stopped_by is None else f"{result.ending} · {tests.counts}"


def control_text(run: RunFinished) -> str:
    """The outcome of a run without a working program or with a mutated one, and what it says of the tests.

    `run_title` says which of these it is.
    """
    if run.purpose != "tests alone":  # its output is judged with the check itself
        if OUTCOME_MARK in run.result.stdout:
            return outcome_text(call_outcome(run.result.stdout))
        lines = run.result.stdout.split("\n")
        printed = next((line.strip() for line in lines if line.strip()), "")
        shown = repr(printed[:40]) if printed else "nothing"
        return f"{run.result.ending}, prints {shown}"
    outcomes = MUTANT_OUTCOMES if run.about in MUTANT_TITLES else WITHOUT_PROGRAM
    return outcomes[control_result(run)]


def speaks_for_person(team: TeamSpec, speaker: str) -> bool:
    """Whether the person speaks in this member's turns; among assistants a model speaks for the person."""
    return way_of(team).asks_person and speaker == team.person


def open_question(state: State) -> Question | None:
    """The question that the chat waits for the person to answer; None while it waits for nobody."""
    waits = (
        state.ended is None
        and state.floor.turn is not None
        and (speaks_for_person(state.team, state.floor.turn.speaker) or open_ask(state) is not None)
    )
    return question(state) if waits else None


def awaited_question(state: State) -> Question | None:
    """The open question, unless the team agrees by itself to what it asks (`Session.person`)."""
    asked, team = open_question(state), state.team
    if asked is None or team.approve != "auto":
        return asked
    return asked if (team.stepwise or team.consult) and asked.kind in ("step", "review", "ask") else None


def is_delivered(state: State) -> bool:
    """Whether the newest version is in the person's folder, and nothing has come since."""
    done = state.base.deliveries if state.base else ()
    return (
        bool(done)
        and not done[-1].undoes
        and state.work.version is not None
        and done[-1].tree == state.work.version.tree
    )


def status(state: State) -> str:
    """The status of the chat in a few words."""
    if (ended := ending(state)) is not None:
        return ending_text(state, ended)
    if state.halted is not None:
        return f"error: {state.halted.cause}"
    if state.floor.turn is None:
        return "not begun"
    if (asked := open_question(state)) is not None:
        return f"waits for the person to {QUESTION_VERBS[asked.kind]}"
    return f"unfinished, it was the {state.floor.turn.speaker}'s turn"


def ending_text(state: State, ended: ChatEnded) -> str:
    text = ENDINGS[ended.reason].format(by=ended.by or "a member")
    if ended.reason == "claimed" and state.floor.termination is not None:
        text = "claimed, not proven: the manager says it is done, nothing was checked"
    if ended.reason == "done" and (known := known_reservations(state)):
        text = f"done; {'; '.join(known)}"
    detail = ended.detail if ended.reason != "done" else ""
    return f"{text} ({detail})" if detail and detail != text else text


def report_table(state: State, width: int = 120) -> str:
    """Requirement → check → evidence, for the newest version, in columns that fit the width."""
    lines = evidence_report(state)
    if not lines or state.work.version is None:
        return ""
    rows = report_rows(lines, state.work.version.number)
    if width < NARROW_WIDTH:
        return "\n".join([*(narrow_row(row, width) for row in rows), *suite_notes(state)])
    rows = [TABLE_HEADER, *rows]
    available = max(60, width) - 30
    wide, middle = available * 2 // 5, available // 3
    max_widths = [1, wide, middle, 10, available - wide - middle, 7]
    widths = [
        min(max_width, max(map(len, column)))
        for max_width, column in zip(max_widths, zip(*rows, strict=True), strict=True)
    ]
    rule = tuple("─" * width for width in widths)
    table = [columns(cells, widths) for cells in [rows[0], rule, *rows[1:]]]
    return "\n".join([*table, *suite_notes(state)])


NARROW_WIDTH = 80
"""Below it the columns of the table would break words into pieces: each requirement gets lines of its own."""


def narrow_row(row: tuple[str, ...], width: int) -> str:
    """A requirement and, indented below it, its check and what shows it."""
    mark, requirement, check, author, evidence, _ = row
    cells = [(f"{mark}  ", requirement), ("   ", check), ("   ", f"{evidence} · by {author}")]
    return "\n".join(
        fill(text, max(20, width), initial_indent=indent, subsequent_indent="   ", break_on_hyphens=False)
        for indent, text in cells
    )


MOST_LINES = 10
"""Of one row of the table."""


def columns(cells: tuple[str, ...], widths: list[int]) -> str:
    """One row of the table, on as many lines as its longest cell needs, up to a bound."""
    fitted = zip(cells, widths, strict=True)
    wrapped = [wrapped_cell(clip(cell, MOST_LINES * width), width) for cell, width in fitted]
    lines = zip_longest(*wrapped, fillvalue="")
    return "\n".join(
        "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


PARTS_OF_NAMES = re.compile(r".*?(?:::|[_/]|$)")


def wrapped_cell(text: str, width: int) -> list[str]:
    """The cell's lines; a name that is longer than a line is broken between its parts."""
    return wrap(" ".join(broken_name(word, width) for word in text.split()), width, break_on_hyphens=False)


def broken_name(word: str, width: int) -> str:
    """The word in pieces of at most the width, where it has parts to break between."""
    pieces: list[str] = [""]
    for part in PARTS_OF_NAMES.findall(word) if len(word) > width else [word]:
        if len(pieces[-1]) + len(part) > width and pieces[-1]:
            pieces.append("")
        pieces[-1] += part
    return " ".join(pieces)


def report_rows(lines: Sequence[EvidenceLine], version: int) -> list[tuple[str, ...]]:
    """A row a check; a requirement with several checks is named in the first of its rows only."""
    before = ["", *(line.item.text for line in lines)]
    return [
        report_row(line, version, is_new=line.item.text != text)
        for line, text in zip(lines, before, strict=False)
    ]


def report_row(line: EvidenceLine, version: int, *, is_new: bool) -> tuple[str, ...]:
    item = line.item
    return (
        "✓" if line.is_met else "✗",
        f"{item.id} {item.text}" if is_new else item.id,
        check_text(item.check),
        author_text(line),
        line.detail,
        f"v{version}",
    )


def author_text(line: EvidenceLine) -> str:
    """Who wrote what shows it; `coder only` where nobody else has."""
    return "coder only" if line.own_tests else line.author


def summary(state: State) -> str:
    """Summarise a chat on one screen. Without clock times, so an interrupted chat reads like an uninterrupted one."""
    parts = [
        f"{state.chat}: {status(state)}",
        f"error: {state.halted.text} (then: septet resume {state.chat})" if state.halted else "",
        f"goal: {clip(' '.join(state.goal.split()), 200)}",
        f"team: {state.team.name} · {pluralize(len(state.work.versions), 'version')} · {spending_text(state)}",
        *member_spending_lines(state),
        *version_lines(state),
        report_table(state),
        "".join(f"open: {text}\n" for text in shortcomings(state)).rstrip() if state.work.versions else "",
        artefacts_line(state),
        runs_line(state),
        f"network: {network_text(state.team.network)}" if state.work.versions else "",
        f"workspace: {state.workspace}",
    ]
    return "\n".join(part for part in parts if part)


def network_text(network: Network) -> str:
    """Which hosts programs can reach, as text."""
    if isinstance(network, str):
        return "off" if network == "off" else "on, every public host"
    return f"only {', '.join(network)}"


def version_lines(state: State) -> list[str]:
    reviews = {review.version: review for review in state.work.reviews}
    lines: list[str] = []
    for version in state.work.versions:
        files = ", ".join(file.path for file in version.files)
        review = reviews.get(version.number)
        verdict = f"{review.verdict}, {pluralize(len(review.findings), 'finding')}" if review else "no review"
        lines.append(f"  v{version.number}  {version.tree[:8]}  {files}  ({verdict})")
    return lines


def runs_line(state: State) -> str:
    """The runs of the newest version, by the ids accepted by `show --output`."""
    if not state.work.runs:
        return ""
    ids = ", ".join(run.id for run in state.work.runs)
    return f"runs: {ids} (septet show {state.chat} --output '{state.work.runs[0].id}')"


def artefacts_line(state: State) -> str:
    made = sorted(path for path in products_of(state) if not path.startswith("."))
    return f"made: {', '.join(made)}" if made else ""
