"""Chats in the making: states folded from events, as the real thing is."""

from collections.abc import Iterable

from septet.domain.events import (
    ChatStarted,
    Event,
    EvidenceFound,
    ModelAnswered,
    PlanApproved,
    PlanProposed,
    Recorded,
    ReviewGiven,
    RunFinished,
    TurnOpened,
    VersionWritten,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.messages import Answer
from septet.domain.plans import CommandSucceeds, Plan, Requirement, TestsPass, plan_digest
from septet.domain.reduce import fold
from septet.domain.reviews import Finding
from septet.domain.runs import Purpose, RunResult
from septet.domain.state import State
from septet.ways.table import TEAMS

PLAN = Plan(
    items=(
        Requirement(id="P1", text="add gives the sum", check=TestsPass(target="test_add.py::test_sum")),
        Requirement(
            id="P2", text="it prints", check=CommandSucceeds(command="python add.py 2 3", prints="5")
        ),
    ),
    run="python add.py 1 1",
)
STARTED = ChatStarted(goal="add numbers", team=TEAMS["iterate"], workspace="/w")
SUMMARY = "=== short test summary info ===\n"
GREEN = SUMMARY + "PASSED test_add.py::test_sum\n"
RED = SUMMARY + "FAILED test_add.py::test_sum - assert -1 == 5\n"


def chat(events: Iterable[Event]) -> State:
    """The state after these events."""
    return fold(
        Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in enumerate(events, start=1)
    )


def planned() -> list[Event]:
    return [
        STARTED,
        TurnOpened(speaker="planner"),
        said("planner", "a plan"),
        PlanProposed(plan=PLAN),
        TurnOpened(speaker="proxy"),
        PlanApproved(plan=plan_digest(PLAN)),
    ]


def said(role: str, text: str) -> ModelAnswered:
    return ModelAnswered(role=role, answer=Answer(text=text))


def version(number: int, content: str) -> list[Event]:
    """The coder's turn. `content` stands for the files' content, by its own name."""
    files = (FileRef(path="add.py", sha256=content, size=9), FileRef(path="test_add.py", sha256="t", size=9))
    written = VersionWritten(number=number, files=files, tree=tree_of(files))
    return [TurnOpened(speaker="coder"), said("coder", "code"), written]


def ran(number: int, content: str, *, green: bool, alone: bool = True) -> list[Event]:
    """The runner's turn; `alone` says that the tests fail without the program, as they should."""
    files = (FileRef(path="add.py", sha256=content, size=9), FileRef(path="test_add.py", sha256="t", size=9))
    tree = tree_of(files)
    code = 0 if green else 1

    def run(purpose: Purpose, result: RunResult, about: str = "") -> RunFinished:
        title = f"{purpose} {about}".rstrip()
        return RunFinished(
            id=f"v{number} {title}", purpose=purpose, about=about, command=title, tree=tree, result=result
        )

    first, second = PLAN.items
    return [
        TurnOpened(speaker="runner"),
        run("run", RunResult(exit_code=0, stdout="2\n")),
        run("tests", RunResult(exit_code=code, stdout=GREEN if green else RED)),
        run("check", RunResult(exit_code=0, stdout="5\n"), about="P2"),
        run("tests alone", RunResult(exit_code=2 if alone else 0)),
        EvidenceFound(item="P1", check=first.check, passed=green and alone, detail="1 passed", tree=tree),
        EvidenceFound(item="P2", check=second.check, passed=True, detail="exit 0, prints '5'", tree=tree),
    ]


def reviewed(number: int, *, accept: bool) -> list[Event]:
    findings = (
        ()
        if accept
        else (Finding(id="F1", text="it subtracts", item="P1", severity="must", evidence="add.py:5"),)
    )
    verdict = "accept" if accept else "revise"
    given = ReviewGiven(version=number, tree="", verdict=verdict, findings=findings)
    return [TurnOpened(speaker="reviewer"), said("reviewer", verdict), given]
