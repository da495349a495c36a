"""How a chat ended, for programs: the last line of `--json` and `team.result`."""

from collections.abc import Mapping

from septet.domain.plans import check_text
from septet.domain.state import Spending, State
from septet.domain.talk import Usage
from septet.domain.values import Value
from septet.team.endings import FINISHED, ending
from septet.team.evidence import report


class ReportLine(Value, omit_defaults=False):
    item: str
    requirement: str
    check: str
    met: bool
    evidence: str
    version: int


class Result(Value, omit_defaults=False):
    """`status` is how the chat ended, or `unfinished`; `exit_code` is what a command line ends with.

    `members` says what each of them used.
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
    type: str = "result"


def result_of(state: State) -> Result:
    number = state.version.number if state.version else 0
    ended = ending(state)
    status = ended.reason if ended else "unfinished"
    lines = tuple(
        ReportLine(
            item=line.item.id,
            requirement=line.item.text,
            check=check_text(line.item.check),
            met=line.met,
            evidence=line.detail,
            version=number,
        )
        for line in report(state)
    )
    return Result(
        chat=state.chat,
        status=status,
        detail=ended.detail if ended else state.halted.text if state.halted else "",
        exit_code=0 if status in FINISHED else 3,
        versions=len(state.versions),
        workspace=state.workspace,
        evidence=lines,
        usage=state.spent.usage,
        cost=state.spent.cost,
        members=state.spending,
        answer=state.answered.text if state.answered else "",
    )
