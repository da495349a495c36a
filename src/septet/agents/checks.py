"""Turns runs and files into evidence: whether a requirement's check holds for the newest version."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol, assert_never

from msgspec.structs import replace

from septet.agents.reply_files import sources
from septet.common.pictures import recognise
from septet.common.text import pluralize
from septet.common.values import Value
from septet.domain.events import EvidenceFound, RunFinished, SpecialCase
from septet.domain.files import is_test
from septet.domain.plans import (
    CUSTOM_CHECKS,
    Check,
    CommandSucceeds,
    CustomCheck,
    ExampleHolds,
    FileExists,
    HoldableCheck,
    Judged,
    Mends,
    PictureExists,
    Requirement,
    Serves,
    ShowsWindow,
    TestsPass,
    custom_checks,
    gives_input,
    input_of,
)
from septet.domain.pytest_report import TestReport, covers
from septet.domain.runs import Screen
from septet.domain.state import State
from septet.ports import Blobs
from septet.team.acceptance import call_outcome, is_as_wanted, outcome_text
from septet.team.baseline import (
    baseline_report,
    changed_tests,
    found_tests_of,
    has_project,
    raw_tests_of,
    run_for,
    tests_command,
    tests_of,
    tests_run,
    unchanged_by_version,
)
from septet.team.controls import asking, new_sign, prints_text, tampering
from septet.team.evidence import (
    author_of,
    control_doubts,
    control_of_tests,
    doubts,
    foreign_text,
    incomplete_reason,
    tested_target,
)
from septet.team.shortcuts import contradiction, deaf_operators, known_by_heart, place_question, text_programs
from septet.team.witnesses import special_cases_found
from septet.workspace.files import MAX_FILE_BYTES, Workspace

HELD_KINDS: Mapping[type[HoldableCheck], str] = {
    CommandSucceeds: "a command",
    Serves: "a request",
    ExampleHolds: "an example",
}


class Observation(Value):
    """Whether a check holds, the details, and the run that shows it."""

    holds: bool
    detail: str
    run: str = ""
    judged: bool = False
    """Whether it holds because of a text that the version has, which somebody must judge."""


class Contents(Protocol):
    """Files that runs created: blobs, or the workspace for files that are not stored as blobs."""

    @property
    def blobs(self) -> Blobs: ...

    @property
    def workspace(self) -> Workspace: ...

    async def base_texts(self, paths: Iterable[str]) -> dict[str, str]:
        """What these files held before the chat changed them."""
        ...


@dataclass(frozen=True)
class CheckContext:
    """The input of a check: the state of the chat, and the files of the newest version and its runs."""

    state: State
    contents: Contents

    async def content(self, path: str) -> bytes | None:
        """The content of a file of the version or of its runs; None if there is none."""
        files = {file.path: file.sha256 for file in self.state.work.files}
        address = {**files, **self.state.work.artefacts}.get(path)
        if address is None:
            return None
        return await (self.contents.blobs.get(address) if address else self.contents.workspace.content(path))


@dataclass(frozen=True)
class CheckKind:
    """A custom kind of check: its name and syntax in plans, and the function that checks it.

    `look` receives the text after the name in the plan.
    """

    name: str
    form: str
    look: Callable[[CheckContext, str], Awaitable[Observation]]


def add_check(kind: CheckKind) -> CheckKind:
    """Register a custom kind of check for plans."""
    CUSTOM_CHECKS[kind.name] = kind
    return kind


async def find_evidence(state: State, item: Requirement, contents: Contents) -> EvidenceFound:
    """Check one requirement; the evidence names the tree that it counts for."""
    found = await look(state, item, contents)
    tree = state.work.version.tree if state.work.version else ""
    return EvidenceFound(
        item=item.id,
        check=item.check,
        passed=found.holds,
        detail=found.detail,
        tree=tree,
        run=found.run,
        held_before=found.holds and held_before(state, item),
        written=found.holds and await has_written_text(state, item.check, contents),
        judged=found.judged,
        signs=await signs_of(state, item.check, contents) if found.holds else (),
        special=special_cases_of(state, item) if found.holds else (),
    )


def special_cases_of(state: State, item: Requirement) -> tuple[SpecialCase, ...]:
    """The special cases by which the tests or the example of a requirement hold."""
    named = item.id if isinstance(item.check, ExampleHolds) else tested_target(item.check)
    if named is None:
        return ()
    found = special_cases_found(state).cases
    return tuple(one.case for one in found if any(not named or covers(named, test) for test in one.tests))


def unasked(state: State, check: Check) -> str:
    """Why nobody knows whether there are special cases: the program knows how it is written, or could not be asked."""
    if not isinstance(check, TestsPass | Mends | ExampleHolds):
        return ""
    report = special_cases_found(state)
    if report.lost:
        return f"{report.lost[0]} fails over the same program in another form"
    return "" if report.asked else "the program could not be asked for special cases"


async def signs_of(state: State, check: Check, contents: Contents) -> tuple[str, ...]:
    """What in the files says that the check may hold here, or for these tests, alone."""
    if isinstance(check, FileExists | PictureExists | ShowsWindow | Judged | CustomCheck):
        return ()
    texts = await sources(state, contents.blobs)
    before = await contents.base_texts(texts)
    place = place_question(texts, before)
    found = [f"{place} asks where it runs, and may do something else elsewhere"] if place else []
    program = {path: text for path, text in texts.items() if not is_test(path)}
    if trouble := unasked(state, check):
        found.append(trouble)
    if hidden := new_sign(program, before, text_programs):
        found.append(f"{hidden} runs code that is a text, in which nothing looked for special cases")
    if isinstance(check, TestsPass | Mends) and author_of(state, check) != "coder":
        path, _, name = check.target.partition("::")
        tests = texts.get(path) or (await contents.base_texts([path])).get(path, "")
        names = [name.partition("[")[0].rpartition("::")[2]] if name else []
        if where := known_by_heart(texts, before, tests, names):
            found.append(f"{where} has the results that {check.target} wants written in it")
        if call := contradiction(tests, names):
            found.append(f"{check.target} wants different results of {call}")
    return tuple(found)


def held_before(state: State, item: Requirement) -> bool:
    """Whether a check that holds does so without the version's changes too: what no run made is only a text."""
    match item.check:
        case TestsPass(target=target):
            tests = changed_tests(state)
            return has_project(state) and not any(covers(target, test) for test in tests)
        case CommandSucceeds() | Serves() | ExampleHolds():
            run = run_for(state, "check on base", item.id)
            return run is not None and about_outcome(item.check, run, secret=False).holds
        case FileExists(path=path) | PictureExists(path=path):
            return has_project(state) and not maker(state, path)
        case _:
            return False


def holds_when_empty(state: State, item: Requirement) -> bool:
    """Whether a check also holds where all functions are empty."""
    control = run_for(state, "hollow check", item.id)
    if control is None or not isinstance(item.check, CommandSucceeds | ExampleHolds):
        return False
    return about_outcome(item.check, control, secret=False).holds


async def look(state: State, item: Requirement, contents: Contents) -> Observation:
    match item.check:
        case TestsPass() | Mends():
            return await about_named_tests(state, item.check, contents)
        case CommandSucceeds() | Serves() | ExampleHolds():
            return await about_tried(state, item.id, item.check, contents)
        case FileExists(path=path):
            return about_file(state, path)
        case PictureExists(path=path):
            return await about_picture(state, path, contents)
        case ShowsWindow():
            return await about_window(state, contents)
        case Judged():
            return Observation(holds=False, detail="needs a judgement")
        case CustomCheck():
            return await about_custom(item.check, CheckContext(state, contents))
        case _:
            assert_never(item.check)


async def about_custom(check: CustomCheck, context: CheckContext) -> Observation:
    kind = custom_checks().get(check.kind)
    if not isinstance(kind, CheckKind):
        return Observation(holds=False, detail=f"no kind of check '{check.kind}' is installed here")
    return await kind.look(context, check.argument)


async def about_named_tests(state: State, check: TestsPass | Mends, contents: Contents) -> Observation:
    """Check tests, and that neither they nor the program tamper with the other."""
    found = (about_mending if isinstance(check, Mends) else about_tests)(state, check.target)
    if not found.holds:
        return found
    texts = await sources(state, contents.blobs)
    deeds = raw_tests_of(state).deeds
    before = await contents.base_texts({*texts, *(deed.partition(":")[0] for deed in deeds)})
    deaf = new_sign({one: texts[one] for one in texts if not is_test(one)}, before, deaf_operators)
    trouble = (
        tampering(texts, before)
        or next((one for one in deeds if is_new(one, texts, before)), "")
        or (f"{deaf} answers the same whatever it is compared with" if deaf else "")
    )
    return replace(found, holds=False, detail=f"{trouble}, so the tests prove nothing") if trouble else found


async def about_tried(state: State, item: str, check: HoldableCheck, contents: Contents) -> Observation:
    """Check a run, and that the program does not ask who runs it."""
    found = about_run(state, item, check)
    if not found.holds:
        return found
    texts = {path: text for path, text in (await sources(state, contents.blobs)).items() if not is_test(path)}
    trouble = asking(texts, await contents.base_texts(texts))
    return replace(found, holds=False, detail=f"{trouble}, so it proves nothing") if trouble else found


def is_new(deed: str, texts: Mapping[str, str], before: Mapping[str, str]) -> bool:
    """Whether `FILE:LINE did something` is about a line that the project did not have before."""
    path, _, place = deed.partition(":")
    number = place.partition(" ")[0]
    lines = texts.get(path, before.get(path, "")).splitlines()
    there = lines[int(number) - 1 : int(number)] if number.isdigit() else []
    return not there or there[0].strip() not in map(str.strip, before.get(path, "").splitlines())


async def has_written_text(state: State, check: Check, contents: Contents) -> bool:
    """Whether a command with arguments finds a text that the program has written in it."""
    if not isinstance(check, CommandSucceeds) or check.held or not check.prints or not gives_input(check):
        return False
    return prints_text(await sources(state, contents.blobs), check.prints)


def about_tests(state: State, target: str) -> Observation:
    """Check tests: all tests of a named file must pass; a folder may have skipped tests and expected failures."""
    run = tests_run(state)
    own = bool(tests_command(state))
    report = (
        tests_of(state)
        if own and not reports_by_file(tests_of(state), target)
        else tests_of(state).about(target)
    )
    where = run.id if run else ""
    if trouble := about_report(report, run, is_folder(target) or own):
        return Observation(holds=False, detail=trouble, run=where)
    as_found = found_tests_of(state)
    before = as_found.about(target) if as_found else TestReport()
    if before.failed and baseline_report(state).about(target).failed:
        return Observation(
            holds=False, detail=f"{before.counts} with the tests as they were found", run=where
        )
    if found := doubts(state) or control_doubts(state, target):
        return Observation(holds=False, detail=found[0], run=where)
    detail = f"{report.counts}; as it was found: {before.counts}" if before.failed else report.counts
    return about_change(state, report, detail, where)


def about_change(state: State, report: TestReport, detail: str, where: str) -> Observation:
    """Name new tests that pass without the change too; if no control shows that they can fail, they prove nothing."""
    same = unchanged_by_version(state).intersection(report.passed)
    if not same:
        return Observation(holds=True, detail=detail, run=where)
    detail = f"{detail}; {unchanged_text(len(same), len(report.passed))} without the change too"
    if len(same) < len(report.passed) or control_of_tests(state) is not None:
        return Observation(holds=True, detail=detail, run=where)
    return Observation(holds=False, detail=f"{detail}, and nothing shows that they can fail", run=where)


def reports_by_file(report: TestReport, target: str) -> bool:
    """Whether test ids contain files with the target's suffix, so that the target selects some of the tests."""
    kind = PurePosixPath(target.partition("::")[0]).suffix
    return bool(kind) and any(case.id.partition("::")[0].endswith(kind) for case in report.cases)


def unchanged_text(same: int, passed: int) -> str:
    if same == passed:
        return "passes" if same == 1 else "all pass"
    return f"{same} of them {'passes' if same == 1 else 'pass'}"


def about_mending(state: State, target: str) -> Observation:
    """Check that the test fails on the untouched base and passes now: only that proves that a bug is fixed."""
    if state.base is None or state.base.baseline is None:
        return Observation(holds=False, detail="there is no base on which it could have failed")
    before = named_tests(state, baseline_report(state), target)
    if before.foreign:
        return Observation(holds=False, detail=foreign_text(before), run=state.base.baseline.id)
    if not before.failed:
        detail = "it passed before anything was changed" if before.cases else "the base has no such test"
        return Observation(holds=False, detail=detail, run=state.base.baseline.id)
    run, report = tests_run(state), named_tests(state, raw_tests_of(state), target)
    trouble = about_report(report, run, is_folder(target))
    if not trouble and (as_found := found_tests_of(state)):
        why = about_report(named_tests(state, as_found, target), run, is_folder(target))
        trouble = f"{why} with the tests as they were found" if why else ""
    detail = trouble or f"{before.counts} before, {report.counts} now"
    return Observation(holds=not trouble, detail=detail, run=run.id if run else "")


def named_tests(state: State, report: TestReport, target: str) -> TestReport:
    """The tests that the target names: all of them, if it is the command of the suite (`mends npm test`)."""
    return report if target == tests_command(state) else report.about(target)


def about_report(report: TestReport, run: RunFinished | None, folder: bool) -> str:
    """Why the report is no evidence; empty if it is."""
    if report.foreign:
        return foreign_text(report)
    if report.failed or run is None:
        return report.counts or "was not run"
    if why := incomplete_reason(report, run):
        return f"{report.counts}; {why}" if report.cases else why
    if not report.passed:
        return report.counts or "no such test ran"
    return "" if folder or len(report.passed) == len(report.cases) else report.counts


def is_folder(target: str) -> bool:
    return not target.partition("::")[0].endswith(".py")


def about_run(state: State, item: str, check: CommandSucceeds | Serves | ExampleHolds) -> Observation:
    """Check a run; one that also passes without a working program proves nothing, unless it failed on the base: a
    name or a documentation is not there before it is written, and needs no function.
    """
    secret = check.held and item not in state.work.failed_before
    found, control = run_for(state, "check", item), run_for(state, "hollow check", item)
    result = about_outcome(check, found, secret)
    if result.holds and control is not None and about_outcome(check, control, secret).holds:
        base = run_for(state, "check on base", item)
        if base is not None and not about_outcome(check, base, secret).holds:
            return replace(result, judged=True, detail=f"{result.detail}, also with empty functions")
        return replace(result, holds=False, detail="passes without a working program, so it proves nothing")
    return result


def about_outcome(
    check: CommandSucceeds | Serves | ExampleHolds, run: RunFinished | None, secret: bool
) -> Observation:
    """Check the outcome. The first failure of a check that is held back does not show its input; a later one does."""
    match check:
        case CommandSucceeds():
            found = about_output(run, check.prints)
        case Serves():
            found = about_answer(run, check.prints)
        case ExampleHolds():
            found = about_value(run, check)
    if not check.held or run is None:
        return found
    is_call = isinstance(check, ExampleHolds)
    if found.holds:
        return found if is_call else replace(found, detail="gives what is wanted")
    told = found.detail if is_call else f"`{input_of(check)}` {found.detail}"
    return replace(found, detail=f"{HELD_KINDS[type(check)]} that is held back fails" if secret else told)


def about_value(run: RunFinished | None, check: ExampleHolds) -> Observation:
    if run is None:
        return Observation(holds=False, detail="was not run")
    outcome = call_outcome(run.result.stdout)
    if is_as_wanted(outcome, check.value):
        return Observation(holds=True, detail="gives the value", run=run.id)
    told = f"{check.call} {outcome_text(outcome)}, not {check.value}"
    return Observation(holds=False, detail=told, run=run.id)


def about_answer(run: RunFinished | None, text: str) -> Observation:
    """Check a server by the run's own HTTP request, not by what the program prints."""
    if run is None:
        return Observation(holds=False, detail="was not run")
    if run.result.succeeded:
        return Observation(holds=True, detail=f"answers, holds '{text}'" if text else "answers", run=run.id)
    status = re.findall(r"^HTTP \d+ .*$", run.result.stdout, re.MULTILINE)
    if not status:
        return Observation(holds=False, detail=run.result.ending, run=run.id)
    missing = f"the answer does not hold '{text}'"
    detail = missing if status[-1].startswith("HTTP 2") else f"answers with {status[-1]}"
    return Observation(holds=False, detail=detail, run=run.id)


def about_output(run: RunFinished | None, prints: str) -> Observation:
    if run is None:
        return Observation(holds=False, detail="was not run")
    result = run.result
    if not result.succeeded:
        return Observation(holds=False, detail=result.ending, run=run.id)
    if prints not in result.stdout:
        return Observation(holds=False, detail=f"does not print '{prints}'", run=run.id)
    return Observation(holds=True, detail=f"exit 0, prints '{prints}'" if prints else "exit 0", run=run.id)


def about_file(state: State, path: str) -> Observation:
    """Check that the version or one of its runs has the file; files of older versions do not count."""
    files = {file.path: file.size for file in state.work.files}
    for run in state.work.runs:
        files |= {change.path: change.size for change in run.result.changes if change.kind != "deleted"}
    if path not in files:
        return Observation(holds=False, detail="no run made it")
    if not files[path]:
        return Observation(holds=False, detail="it is empty")
    return Observation(holds=True, detail=pluralize(files[path], "byte"), run=maker(state, path))


async def about_picture(state: State, path: str, contents: Contents) -> Observation:
    found = about_file(state, path)
    if not found.holds:
        return found
    address = state.work.artefacts.get(path, "")
    kept = await contents.blobs.get(address) if address else await contents.workspace.content(path)
    if kept is None or len(kept) >= MAX_FILE_BYTES:
        return Observation(holds=False, detail="it is too big to look at")
    picture = recognise(kept)
    passed = not picture.error
    return Observation(holds=passed, detail=picture.kind or picture.error, run=found.run)


async def about_window(state: State, contents: Contents) -> Observation:
    """Check the screenshot of the run on a screen, if that run succeeded."""
    run = run_for(state, "run")
    if run is None or run.mode != "screen":
        return Observation(holds=False, detail="the program was not run on a screen")
    if not run.result.succeeded:
        return about_output(run, "")
    return await about_picture(state, Screen().picture, contents)


def maker(state: State, path: str) -> str:
    """The id of the last run that wrote the file."""
    made = [run.id for run in state.work.runs for change in run.result.changes if change.path == path]
    return made[-1] if made else ""
