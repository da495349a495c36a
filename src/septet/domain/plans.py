"""Plans: numbered requirements, each with the check that will prove it, and their one text form."""

import ast
import re
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from itertools import groupby
from typing import Literal, Protocol, runtime_checkable

from msgspec.structs import replace

from septet.common.entry_points import plugins
from septet.common.patterns import LazyPattern
from septet.common.values import Value
from septet.domain.facts import change_in
from septet.domain.runs import RunResult
from septet.errors import BadConfig

MAX_SNIPPET_LENGTH = 4_000
ERROR_LINES = (
    LazyPattern(r"(?:E +)?[\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b"),
    LazyPattern(r"E +\S"),
    LazyPattern(r"(?:FAILED|ERROR) "),
)
"""Lines that name the error, in order of preference; pytest truncates its own summary."""
ASSERT_DETAIL = LazyPattern(r"E +\+ +(?:where|and) ")
"""How pytest explains the values of an assert: with objects and their addresses."""
TEMPORARY = r"(?:/private)?/(?:(?:var/)?tmp|dev/shm|var/folders)"
VARYING = (
    (LazyPattern(rf"{TEMPORARY}/(?:[^\s/'\"]+/)+"), "…/"),
    (LazyPattern(rf"{TEMPORARY}/[^\s/'\"]+"), "…"),
    (LazyPattern(r"0x[0-9a-fA-F]+"), "0x…"),
    (LazyPattern(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"), "…"),
    (LazyPattern(r"\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|seconds?|minutes?)\b(?: \([\d:]+\))?"), "0 s"),
    (LazyPattern(r"\d+(?:\.\d+)?"), "0"),
)
"""What differs from run to run, and its placeholder."""
VARIES = LazyPattern(r"[\d/]")
"""Each of them has a digit or a slash in it. A quick look at each failing run of a long log."""


class Example(Value):
    """A snippet that worked, what it is about, and its source."""

    title: str
    code: str
    source: str
    text: str = ""


def signature(result: RunResult) -> str:
    """Return the line that names the error, without what differs from run to run: equal for equal failures."""
    if result.stopped_by:
        return f"stopped by the {result.stopped_by} limit"
    output = (result.stdout + "\n" + result.stderr).splitlines()
    lines = [line.strip() for line in output if line.strip() and not ASSERT_DETAIL.match(line.strip())]
    if not lines:
        return f"exit {result.exit_code}"
    line = next(
        (line for pattern in ERROR_LINES for line in reversed(lines) if pattern.match(line)), lines[-1]
    )
    line = line.removeprefix("E ").strip()
    if VARIES.search(line):
        for pattern, placeholder in VARYING:
            line = pattern.sub(placeholder, line)
    return line[:300]


def words(text: str) -> list[str]:
    """Return words and the parts of identifiers in lower case: `readCSV_file` gives read, csv and file."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", re.sub(r"[_\W]+", " ", text))
    return [part.lower() for part in parts if len(part) > 1]


class TestsPass(Value, tag="tests"):
    """The tests at `target` (a pytest path or node id) exist and pass."""

    __test__ = False  # not a test itself, whatever pytest thinks of the name

    target: str


class Mends(Value, tag="mends"):
    """The tests at `target` failed on the untouched base, and pass now."""

    target: str


class CommandSucceeds(Value, tag="command"):
    """The command exits with 0 and, if `prints` is given, its standard output contains that text."""

    command: str
    prints: str = ""
    held: bool = False
    """Not shown to those who write the program, as an example that is held back."""


class FileExists(Value, tag="file"):
    """The file is part of the version or was made by a run of it, and is not empty."""

    path: str


class PictureExists(Value, tag="picture"):
    """The file exists, is a picture and is not of a single colour."""

    path: str


class ShowsWindow(Value, tag="window"):
    """The program opens a window that is not empty: a screenshot is the evidence."""


class Serves(Value, tag="serves"):
    """The program, started as a server, responds to a request for `path`; the response contains `prints`."""

    path: str
    prints: str = ""
    held: bool = False


class ExampleHolds(Value, tag="example"):
    """A call of one of the program's functions returns this value; both are written as Python literals.

    The value never enters the program's process. An example that is `held` back is shown to the person, and never to
    those who write the program.
    """

    call: str
    value: str
    held: bool = False


class Judged(Value, tag="judged"):
    """The reviewer or the person judges it: the last resort."""

    by: Literal["reviewer", "person"] = "reviewer"


class CustomCheck(Value, tag="custom"):
    """A check of a kind that the embedding program or an installed package has added: its name and argument."""

    kind: str
    argument: str = ""


Check = (
    TestsPass
    | Mends
    | CommandSucceeds
    | FileExists
    | PictureExists
    | ShowsWindow
    | Serves
    | ExampleHolds
    | Judged
    | CustomCheck
)


@runtime_checkable
class CheckForm(Protocol):
    """What a plan needs to know of an added kind: its `name`, and its `form` as text for the planner."""

    @property
    def name(self) -> str: ...

    @property
    def form(self) -> str: ...


CUSTOM_CHECKS: dict[str, CheckForm] = {}
"""The kinds that the embedding program has added."""


@cache
def installed_checks() -> dict[str, CheckForm]:
    """Load the kinds of installed packages, from the entry point group `septet.checks`."""
    found: dict[str, CheckForm] = {}
    for loaded in plugins("septet.checks"):
        if not isinstance(loaded, CheckForm):
            raise BadConfig(
                f"{loaded!r} of an installed package is no kind of check", "it must be a CheckKind"
            )
        found[loaded.name] = loaded
    return found


def custom_checks() -> dict[str, CheckForm]:
    """Every added kind, by name."""
    return {**installed_checks(), **CUSTOM_CHECKS}


Author = Literal["person", "repository", "planner", "septet", "manager", "coder", "reviewer"]
"""Who wrote what shows that a requirement is met."""

HoldableCheck = CommandSucceeds | Serves | ExampleHolds
"""Checks that give the program an input, and can be held back from those who write it."""


class Requirement(Value):
    """One thing the program must do, and how we will know."""

    id: str
    text: str
    check: Check = Judged()


class Wish(Value):
    """A message of the person after the plan was approved: a requirement like those of the plan.

    `said` is its sequence number, `version` the first new version whose coder had read it (0: none yet).
    """

    id: str
    text: str
    said: int
    version: int = 0
    planned: bool = False
    """The planner has looked at it."""
    checked: bool = False
    """The planner has given it a check, which is not a judgement."""


class Challenge(Value):
    """What the coder says against the check of a requirement, and what was said to it.

    `times` is how often it was said; `stands` is whether the check holds all the same: None while nobody has decided.
    """

    item: str
    by: str
    reason: str
    instead: str = ""
    times: int = 1
    stands: bool | None = None
    decided_by: str = ""
    answer: str = ""


class Plan(Value):
    """The agreed requirements. `run` is the command that starts the program.

    `guesses` are examples that the planner invented: they help to choose among candidates, and prove nothing.
    """

    items: tuple[Requirement, ...]
    run: str = ""
    guesses: tuple[str, ...] = ()


class Refusal(Value):
    """A reply that cannot be used, and the reason, which is sent to the model for another try."""

    reason: str


def check_text(check: Check) -> str:
    """Format a check as in the plan, beginning with its tag; the inverse of `parse_check`."""
    word = check.__struct_config__.tag
    match check:
        case CommandSucceeds(command=rest, prints=prints) | Serves(path=rest, prints=prints):
            text = f"{word} {rest} => {prints}" if prints else f"{word} {rest}"
            return f"held {text}" if check.held else text
        case TestsPass(target=rest) | Mends(target=rest):
            return f"{word} {rest}"
        case FileExists(path=rest) | PictureExists(path=rest) | Judged(by=rest):
            return f"{word} {rest}"
        case ShowsWindow():
            return f"{word}"
        case ExampleHolds(call=call, value=value, held=held):
            return f"{'held' if held else word} {call} => {value}"
        case CustomCheck(kind=kind, argument=rest):
            return f"{kind} {rest}".rstrip()


def plan_text(plan: Plan) -> str:
    """Format the plan as it is shown, approved and saved: `parse_plan` returns an equal plan.

    A requirement stands once, with its checks beneath; a check has its id where that is not the requirement's number.
    """
    return format_plan(plan, check_text)


def open_plan_text(plan: Plan) -> str:
    """Format the plan for those who must not see held-back examples."""
    return format_plan(plan, lambda check: "held back" if is_held(check) else check_text(check))


def format_plan(plan: Plan, shown: Callable[[Check], str]) -> str:
    lines: list[str] = []
    for number, checked in enumerate(requirements_of(plan), start=1):
        lines.append(f"{number}. {checked[0].text}")
        plain = [item.id for item in checked] == [f"P{number}"]
        lines += [f"   check{'' if plain else f' {item.id}'}: {shown(item.check)}" for item in checked]
    return "\n".join([*lines, *last_lines(plan)]) + "\n"


def requirements_of(plan: Plan) -> list[list[Requirement]]:
    """The items of each requirement: one for each of its checks."""
    return [list(items) for _, items in groupby(plan.items, lambda item: item.text)]


def last_lines(plan: Plan) -> list[str]:
    return [*([f"run: {plan.run}"] if plan.run else []), *(f"perhaps: {guess}" for guess in plan.guesses)]


def without_held(plan: Plan) -> Plan:
    return replace(plan, items=tuple(item for item in plan.items if not is_held(item.check)))


def is_held(check: Check) -> bool:
    return isinstance(check, HoldableCheck) and check.held


def input_of(check: HoldableCheck) -> str:
    """What the program is given: the call, the command or the path."""
    match check:
        case ExampleHolds(call=given) | CommandSucceeds(command=given) | Serves(path=given):
            return given


PLAIN_START = LazyPattern(r"(?!\S*/\S* |\w+=)\S+(?: -m)?(?: \S+)?")
"""A command that starts a program and gives it nothing: `python app.py`, `python -m app`, but not `./app 2`."""


def gives_input(check: HoldableCheck) -> bool:
    """Whether the program gets something to work on, so that it could know the answer by heart."""
    match check:
        case ExampleHolds():
            return True
        case CommandSucceeds(command=command):
            return not PLAIN_START.fullmatch(" ".join(command.split()))
        case Serves(path=path, prints=prints):
            words = [word.lower() for word in re.split(r"[/.]", path) if word]
            return "?" in path or any(re.search(r"\d", word) or word in prints.lower() for word in words)


def plan_digest(plan: Plan) -> str:
    """Return the digest that an approval refers to: it is valid for exactly the plan that was shown.

    It is that of a text with one number for each check, which approvals in logs hold.
    """
    items = enumerate(plan.items, start=1)
    lines = [f"{number}. {item.text}\n   check: {check_text(item.check)}" for number, item in items]
    return sha256("\n".join([*lines, *last_lines(plan), ""]).encode()).hexdigest()


ITEM = LazyPattern(r"^(?:\s{0,3}(?:#+\s*)?|[-*+]\s+)(?P<bold>\*\*)?\d+[.)](?:\*\*)?\s+(?P<text>.+?)\s*$")
BOLD = LazyPattern(r"(?<!\S)\*\*(?=\S)(.+?)(?<=\S)\*\*(?![\w*])")
CHECK = LazyPattern(
    r"^\s*(?:[-*+•]\s+)?[*_]{0,2}(?:also |and )?checks?(?: P?\d+)?[*_]{0,2}\s*:\s*[*_]{0,2}\s*(?P<check>.*?)\s*$",
    re.IGNORECASE,
)
RUN = LazyPattern(r"^\s*[*_]{0,2}run[*_]{0,2}\s*:\s*[*_]{0,2}\s*`?(.+?)`?\s*$", re.IGNORECASE)
NO_RUN = LazyPattern(r"\(?(?:none|nothing|n/a|not needed|no command)\b|[-–—]+$", re.IGNORECASE)
HALVES = LazyPattern(r"`([^`]+)` *=> *`([^`]+)`")
PERHAPS = LazyPattern(r"^perhaps: (.+?)\s*$")
LISTED = LazyPattern(r"^\s*[-*+]\s+(?P<check>.+?)\s*$")
BULLET = LazyPattern(r"^\s*[-*+•]\s+")
RULE = LazyPattern(r"^\s*(?:[-*_]\s*){3,}$")
CHECK_FORMS = (
    "tests TARGET | mends TARGET | command CMD [=> TEXT] | example MODULE.FUNCTION(LITERALS) => LITERAL | "
    "held (the same, or a command or serves) | file PATH | picture PATH | window | serves PATH [=> TEXT] | judged"
)
FENCE = LazyPattern(r"^\s*(?:```|~~~)", re.MULTILINE)
OUTER = LazyPattern(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?:markdown|md|text|txt|plaintext|plan)?[ \t]*\n"
    r"(?P<body>.*?)\n[ \t]*(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
"""A fence around all of a plan."""


def parse_plan(text: str) -> Plan | Refusal:
    """Read a planner's reply: numbered items with a `check:` line each, and a `run:` line.

    Sub-bullets and continuation lines are part of their item; each further check is an item of its own.
    """
    outer = OUTER.search(text)
    text = outer["body"] if outer and any(map(ITEM.match, outer["body"].splitlines())) else text
    if FENCE.search(text):
        return Refusal(reason="a plan holds requirements and checks, no code blocks")
    draft = PlanDraft()
    for line in text.splitlines():
        if refusal := draft.read(line):
            return refusal
    if not draft.items:
        return Refusal(reason="no numbered requirement was found; write lines like '1. what it must do'")
    return Plan(items=tuple(draft.items), run=draft.run, guesses=tuple(draft.guesses))


NOTHING_NEW = LazyPattern(r"^\W*(?:there (?:is|are) )?no new requirements?\b", re.IGNORECASE)


def parse_amendment(text: str, plan: Plan) -> Plan | Refusal:
    """Read a planner's reply about new wishes: what is to be added to the plan or, where it repeats some of it, all."""
    if NOTHING_NEW.match(text):
        return plan
    new = parse_plan(text)
    if isinstance(new, Refusal):
        return new
    if {item.text for item in new.items} & {item.text for item in plan.items}:
        return new
    added = [replace(item, id=f"P{place}") for place, item in enumerate(new.items, len(plan.items) + 1)]
    return replace(plan, items=(*plan.items, *added), run=new.run or plan.run)


class PlanDraft:
    """A plan while its lines are read."""

    def __init__(self) -> None:
        self.items: list[Requirement] = []
        self.run = ""
        self.guesses: list[str] = []
        self._checked = False
        self._listing = False
        self._adjacent = False
        """Whether the previous line belongs to the newest item."""

    def read(self, line: str) -> Refusal | None:
        if not line.strip() or RULE.match(line) or change_in(line):
            self._adjacent = False
        elif found := RUN.match(line):
            self.run = "" if NO_RUN.match(found[1]) else found[1]
        elif found := PERHAPS.match(line):
            self.guesses.append(found[1])
        elif found := ITEM.match(line):
            self._listing = False
            self._begin(plain_title(found))
        elif not self.items:
            return None
        elif (found := CHECK.match(line)) or (self._listing and (found := LISTED.match(line))):
            return self._check(found["check"])
        elif self._adjacent or line[:1].isspace():
            self._go_on(line)
        return None

    def _begin(self, text: str, check: Check | None = None) -> None:
        self.items.append(Requirement(id=f"P{len(self.items) + 1}", text=text, check=check or Judged()))
        self._checked, self._adjacent = check is not None, True

    def _check(self, text: str) -> Refusal | None:
        if not text:
            self._listing = True
            return None
        plain = text.removesuffix("**") if text.count("**") % 2 else BOLD.sub(r"\1", text)
        check, newest = parse_check(plain), self.items[-1]
        if isinstance(check, Refusal):
            return check
        if isinstance(check, Judged) and (words := judged_what(plain)):
            newest = replace(newest, text=f"{newest.text}; {words}")
        if self._checked:
            self._begin(newest.text, check)
        else:
            self.items[-1] = replace(newest, check=check)
            self._checked = True
        return None

    def _go_on(self, line: str) -> None:
        newest = self.items[-1]
        joint = "; " if BULLET.match(line) and not newest.text.endswith(":") else " "
        words = BOLD.sub(r"\1", BULLET.sub("", line).strip())
        self.items[-1] = replace(newest, text=f"{newest.text}{joint}{words}")
        self._adjacent = True


JUDGE = LazyPattern(
    r"\W*judged\b`*(?:\W*(?:by\s+)?(?:the\s+)?(?P<by>reviewer|person)\b(?=\W*(?:[:,;.)]|$)))?"
    r"(?:\W*last resort\b)?[\s:,;.)]*",
    re.IGNORECASE,
)


def judged_what(check: str) -> str:
    """What a planner writes after `judged` says what is wanted: it belongs to the requirement."""
    return JUDGE.sub("", check, count=1).strip()


def plain_title(found: re.Match[str]) -> str:
    """Return the text of an item without markup around it."""
    text = found["text"]
    if found["bold"] and text.count("**") % 2:
        text = text.replace("**", "", 1)
    return BOLD.sub(r"\1", text).strip()


def without_backticks(text: str) -> str:
    """Return the text without backticks around the whole of it, or around each side of its arrow."""
    found = re.fullmatch(r"(`+)([^`]+)\1", text.strip())
    if sides := HALVES.fullmatch(text.strip()):
        return f"{sides[1]} => {sides[2]}"
    return found[2].strip() if found else text.strip()


NAMED: Mapping[str, Callable[[str], Check]] = {
    "test": lambda target: TestsPass(target=target),
    "tests": lambda target: TestsPass(target=target),
    "mends": lambda target: Mends(target=target),
    "file": lambda path: FileExists(path=path),
    "picture": lambda path: PictureExists(path=path),
}
"""Checks with a single argument."""


def parse_check(text: str) -> Check | Refusal:
    """Parse what follows `check:`."""
    word, _, rest = without_backticks(text).partition(" ")
    first, _, prints = (without_backticks(part) for part in rest.partition(" => "))
    kind, rest = word.strip("`:,").lower(), without_backticks(rest)
    match kind:
        case "judged":
            by = JUDGE.match(text)
            return Judged(by="person" if by and (by["by"] or "").lower() == "person" else "reviewer")
        case "window":
            return ShowsWindow()
        case "serves" if first.startswith("/"):
            return Serves(path=first, prints=prints)
        case "command" if rest:
            return CommandSucceeds(command=first, prints=prints)
        case "held" if rest.partition(" ")[0].lower() in ("command", "serves", "example"):
            held = parse_check(rest)
            return replace(held, held=True) if isinstance(held, HoldableCheck) else held
        case "example" | "held":
            return parse_example(rest, held=kind == "held")
        case _ if kind in NAMED and rest:
            return NAMED[kind](rest)
        case _:
            return custom_check(kind, rest) or no_check(text)


CALL = LazyPattern(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+\(.*\)", re.DOTALL)
RAISES = LazyPattern(r"raises (?P<name>[^\W\d]\w*)")


def parse_example(text: str, *, held: bool) -> ExampleHolds | Refusal:
    """`MODULE.FUNCTION(LITERALS) => LITERAL`, or `=> raises NAME`: the last arrow counts, texts may hold others."""
    call, _, value = (without_backticks(part) for part in text.rpartition(" => "))
    try:
        tree = ast.parse(call, mode="eval").body
        arguments = (
            [*tree.args, *(one.value for one in tree.keywords)] if isinstance(tree, ast.Call) else [tree]
        )
        for argument in arguments:
            ast.literal_eval(argument)
        if not RAISES.fullmatch(value):
            ast.literal_eval(value)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return no_check(f"example {text}")
    return (
        ExampleHolds(call=call, value=value, held=held)
        if CALL.fullmatch(call)
        else no_check(f"example {text}")
    )


def custom_check(kind: str, argument: str) -> CustomCheck | None:
    return CustomCheck(kind=kind, argument=argument) if kind in custom_checks() else None


def no_check(text: str) -> Refusal:
    forms = " | ".join([CHECK_FORMS, *(kind.form for kind in custom_checks().values())])
    return Refusal(reason=f"'check: {text}' is none of: {forms}")
