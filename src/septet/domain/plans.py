"""Plans: numbered requirements, each with the check that will prove it, and their one text form."""

import re
from hashlib import sha256
from typing import Literal

from septet.domain.values import Value


class TestsPass(Value, tag="tests"):
    """The tests at `target` (a pytest path or node id) exist and pass."""

    __test__ = False  # not a test itself, whatever pytest thinks of the name

    target: str


class CommandSucceeds(Value, tag="command"):
    """The command exits with 0 and, where `prints` is given, its standard output contains that text."""

    command: str
    prints: str = ""


class FileExists(Value, tag="file"):
    """The file is part of the version or was made by a run of it, and is not empty."""

    path: str


class PictureExists(Value, tag="picture"):
    """The file exists, is a picture and is not of a single colour."""

    path: str


class ShowsWindow(Value, tag="window"):
    """The program opens a window that is not empty: its picture is the evidence."""


class Serves(Value, tag="serves"):
    """The program, started as a server, answers a request for `path`; the answer contains `prints`."""

    path: str
    prints: str = ""


class Judged(Value, tag="judged"):
    """Nothing but a judgement can tell: the last resort."""

    by: Literal["reviewer", "person"] = "reviewer"


Check = TestsPass | CommandSucceeds | FileExists | PictureExists | ShowsWindow | Serves | Judged


class Requirement(Value):
    """One thing the program must do, and how we will know."""

    id: str
    text: str
    check: Check = Judged()


class Plan(Value):
    """What was agreed. `run` is the command that starts the program."""

    items: tuple[Requirement, ...]
    run: str = ""


class Refusal(Value):
    """A reply that cannot be used, and why: told to the model, which may try again."""

    reason: str


def check_text(check: Check) -> str:
    """A check as the plan shows it; the inverse of `parse_check`."""
    match check:
        case TestsPass(target=target):
            return f"tests {target}"
        case CommandSucceeds(command=command, prints=prints):
            return f"command {command} => {prints}" if prints else f"command {command}"
        case FileExists(path=path):
            return f"file {path}"
        case PictureExists(path=path):
            return f"picture {path}"
        case ShowsWindow():
            return "window"
        case Serves(path=path, prints=prints):
            return f"serves {path} => {prints}" if prints else f"serves {path}"
        case Judged(by=by):
            return f"judged {by}"


def plan_text(plan: Plan) -> str:
    """The plan as it is shown, approved and saved: `parse_plan` gives back an equal plan."""
    lines: list[str] = []
    for number, item in enumerate(plan.items, start=1):
        lines += [f"{number}. {item.text}", f"   check: {check_text(item.check)}"]
    if plan.run:
        lines.append(f"run: {plan.run}")
    return "\n".join(lines) + "\n"


def plan_digest(plan: Plan) -> str:
    """What an approval names: it holds for exactly the text that was shown."""
    return sha256(plan_text(plan).encode()).hexdigest()


ITEM = re.compile(r"^\s{0,3}(?:#+\s*)?(?:\*\*)?(\d+)[.)]\s+(.+?)(?:\*\*)?\s*$")
CHECK = re.compile(r"^\s*(?:[-*]\s*)?(?:\*\*)?check(?:\*\*)?\s*:\s*(?:\*\*)?\s*(.+?)\s*$", re.IGNORECASE)
RUN = re.compile(r"^\s*(?:\*\*)?run(?:\*\*)?\s*:\s*(?:\*\*)?\s*`?(.+?)`?\s*$", re.IGNORECASE)
CHECK_FORMS = (
    "tests TARGET | command CMD [=> TEXT] | file PATH | picture PATH | window | serves PATH | judged"
)
FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


def parse_plan(text: str) -> Plan | Refusal:
    """Read a planner's reply: numbered items with a `check:` line each, and a `run:` line."""
    if FENCE.search(text):
        return Refusal(reason="a plan holds requirements and checks, no code blocks")
    items: list[Requirement] = []
    run = ""
    for line in text.splitlines():
        if found := ITEM.match(line):
            items.append(Requirement(id=f"P{len(items) + 1}", text=found[2].strip()))
        elif (found := CHECK.match(line)) and items:
            check = parse_check(found[1])
            if isinstance(check, Refusal):
                return check
            items[-1] = Requirement(id=items[-1].id, text=items[-1].text, check=check)
        elif found := RUN.match(line):
            run = found[1]
    if not items:
        return Refusal(reason="no numbered requirement was found; write lines like '1. what it must do'")
    return Plan(items=tuple(items), run=run)


def parse_check(text: str) -> Check | Refusal:
    """Read what follows `check:`."""
    kind, _, rest = text.strip().strip("`").partition(" ")
    rest = rest.strip().strip("`")
    first, _, prints = (part.strip() for part in rest.partition(" => "))
    found: Check | None = None
    match kind.lower():
        case "judged":
            return Judged(by="person" if rest.lower() == "person" else "reviewer")
        case "window":
            return ShowsWindow()
        case "serves" if first.startswith("/"):
            found = Serves(path=first, prints=prints)
        case "command":
            found = CommandSucceeds(command=first, prints=prints)
        case "test" | "tests":
            found = TestsPass(target=rest)
        case "file":
            found = FileExists(path=rest)
        case "picture":
            found = PictureExists(path=rest)
        case _:
            pass
    return found if found and rest else Refusal(reason=f"'check: {text}' is none of: {CHECK_FORMS}")
