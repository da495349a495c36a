"""Which of the fourteen known failure modes of teams of agents a transcript shows, and the messages that show them.

The modes are those of MAST (arXiv 2503.13657). In a log of ours most signs are typed events; in transcripts of other
programs only the words are known, so what is found there is a suspicion. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeGuard, get_args

import msgspec

from septet.common.text import cut_middle
from septet.common.values import Value
from septet.domain.codec import decode
from septet.domain.events import (
    ChatEnded,
    Event,
    EvidenceFound,
    ModelAnswered,
    PlanProposed,
    Recorded,
    ReplyRefused,
    ReviewGiven,
    Terminated,
    VersionWritten,
)
from septet.domain.plans import Judged
from septet.domain.reduce import reduce
from septet.domain.state import State
from septet.errors import BadUsage
from septet.team.reviews import stems
from septet.ways.endings import ending

FORMS = (
    "a log of Septet, a list of messages (OpenAI, AutoGen, AG2), or a trajectory (SWE-agent, mini-swe-agent)"
)
OUTPUTS = ("tool", "function", "observation", "environment", "user_proxy_output")
EXIT = re.compile(
    r"<returncode>\s*(?P<code>-?\d+)\s*</returncode>|exitcode: (?P<other>\d+)|exit code:? (?P<last>\d+)"
)
ERROR = re.compile(
    r"Traceback \(most recent call last\)|^\w*(?:Error|Exception):|^FAILED |\b[1-9]\d* failed\b", re.MULTILINE
)

Object = Mapping[str, object]


FailureMode = Literal[
    "1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "3.1", "3.2", "3.3"
]
FAILURE_MODES: Mapping[FailureMode, str] = dict(
    zip(
        get_args(FailureMode),
        (
            "disobeys the task",
            "disobeys the role",
            "repeats steps",
            "loses history",
            "does not see the end",
            "begins again",
            "asks nobody",
            "derails",
            "withholds information",
            "ignores input",
            "says one thing, does another",
            "ends too early",
            "checks too little",
            "checks wrongly",
        ),
        strict=True,
    )
)
SHOWN = 120
LONG = 24
"""Shorter messages may be the same by chance."""
SHORTEST = 3
LONGER = 200
"""Shorter messages may be about the task without naming it."""


class Suspicion(Value, omit_defaults=False):
    """A mode, the message or event that shows it by its number from 1, whose it is, and what shows it."""

    mode: FailureMode
    message: int
    who: str
    why: str


class Said(Value):
    """A message of any transcript. `output` is what a tool or a program answered: nobody claims anything there."""

    who: str
    text: str
    output: bool = False
    failed: bool = False
    """The output tells of an error."""
    did: str = ""
    """The tools that it calls, with their arguments."""


CLAIM = re.compile(
    r"""\b(?:all[ ](?:the[ ])?(?:tests|checks)(?:[ ]now)?[ ]pass(?:ed|es)? | tests?[ ](?:are[ ])?pass(?:ed|ing)?\b
    | (?:works|is[ ]working|runs)[ ](?:correctly|perfectly|as[ ]expected|fine)
    | successfully[ ](?:implemented|completed|fixed|resolved|ran)
    | (?:i|we)(?:[ ]have|'ve)?[ ](?:ran|run|verified|tested|checked)[ ](?:it|the|all|everything)
    | fully[ ]functional | verified[ ]that)""",
    re.IGNORECASE | re.VERBOSE,
)
TESTED = re.compile(
    r"pytest|unittest|doctest|\btox\b|\bnox\b|runtests|manage\.py test|\b(?:npm|go|cargo|make|mvn|gradle)\b[^\n]* test"
    r"|\b\d+ (?:passed|failed)\b|\bRan \d+ tests?\b|\bpython3? \S*test|\./\S*test",
    re.IGNORECASE,
)
"""Where tests were run, whatever came of it."""
OVER = re.compile(
    r"""\bTERMINATE\b | ^\W*terminate\W*: | ^\W*verdict\W*:\W*accept
    | \b(?:task|issue|problem)[ ](?:is[ ]|has[ ]been[ ])?(?:now[ ])?
      (?:completed?|done|finished|resolved|solved|fixed)\b""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
GREETING = re.compile(
    r"""how[ ](?:can|may)[ ]i[ ](?:help|assist)
    | (?:let[ ]us|let's|i[ ]will|i'll)[ ](?:start|begin)[ ](?:over|again|from[ ](?:scratch|the[ ]beginning))""",
    re.IGNORECASE | re.VERBOSE,
)
ASSUMES = re.compile(
    r"\b(?:i|we)(?:'ll| will)? (?:just |simply )?(?:assume|guess|suppose)\b|\bassuming\b", re.IGNORECASE
)
ELISION = re.compile(
    r"\b(?:rest|remainder) of (?:the )?(?:code|file|function|program)|(?:code|file|part) (?:is )?omitted",
    re.IGNORECASE,
)
ASKS = re.compile(r"\?\s*$")
HOLLOW = ("so they prove nothing", "so it proves nothing", "no such test ran")
FENCE = "```"


def audit_log(log: Sequence[Recorded]) -> list[Suspicion]:
    """What a log of ours shows, event by event."""
    found: list[Suspicion] = []
    state, said = State(), list[tuple[int, ModelAnswered]]()
    for recorded in log:
        event, before = recorded.event, state
        state = reduce(state, recorded)
        if isinstance(event, ModelAnswered):
            said.append((recorded.seq, event))
        signs = [*event_signs(event, before, state, said), *word_signs(event, before, said)]
        found += [Suspicion(mode=mode, message=recorded.seq, who=who, why=why) for mode, who, why in signs]
    return unique_suspicions(found)


Sign = tuple[FailureMode, str, str]


def event_signs(
    event: Event, before: State, after: State, said: Sequence[tuple[int, ModelAnswered]]
) -> Iterator[Sign]:
    match event:
        case EvidenceFound(passed=False, item=item, detail=detail):
            yield evidence_sign(before, item, detail)
            yield from claim_signs(before, said, f"{item} is not met ({detail})")
        case ReviewGiven(overruled=why, green=green) if why or green:
            yield from review_signs(event)
        case VersionWritten():
            yield from version_signs(event, before)
        case PlanProposed(plan=plan) if all(isinstance(item.check, Judged) for item in plan.items):
            yield "3.2", event.by, "nothing in the plan can be checked by a machine"
        case Terminated(summary=summary) if not after.work.evidence:
            yield "3.1", "manager", f"{summary} (nothing was checked)"
        case ReplyRefused(role=role, reason=reason):
            yield from refusal_signs(role, reason, said)
        case ChatEnded():
            yield from end_signs(after)
        case _:
            return


def evidence_sign(before: State, item: str, detail: str) -> Sign:
    """What a failing check says of the version: it lost something, its tests are empty, or it is not what was asked."""
    if item in before.plan.met_before:
        return (
            "1.4",
            "coder",
            f"version {before.plan.met_before[item]} met {item}, this one does not: {detail}",
        )
    if detail.endswith(HOLLOW):
        return "3.2", "coder", f"{item}: {detail}"
    return "1.1", "coder", f"{item} is not met: {detail}"


def claim_signs(before: State, said: Sequence[tuple[int, ModelAnswered]], instead: str) -> Iterator[Sign]:
    """What the coder said of the version whose check fails."""
    words = next((one.answer.text for _, one in reversed(said) if one.role == "coder"), "")
    version = before.work.version
    if claim := CLAIM.search(prose(words)):
        yield "2.6", "coder", f"says '{claim[0]}': {instead}"
    fixed = [one.finding for one in (version.answers if version else ()) if one.answer == "fixed"]
    if fixed:
        yield "2.6", "coder", f"says that {', '.join(fixed)} is fixed: {instead}"
    kept = [one.finding for one in (version.answers if version else ()) if one.answer == "refused"]
    if kept:
        yield "2.5", "coder", f"refuses {', '.join(kept)}: {instead}"


def review_signs(event: ReviewGiven) -> Iterator[Sign]:
    if event.overruled.startswith("accepted"):
        yield "3.3", "reviewer", event.overruled
    elif event.green and (event.verdict == "revise" or event.overruled):
        yield "1.5", "reviewer", "wants more of what passes every check"


def version_signs(event: VersionWritten, before: State) -> Iterator[Sign]:
    if event.found:
        return
    same = [version.number for version in before.work.versions if version.tree == event.tree]
    if same:
        yield "1.3", "coder", f"version {event.number} is version {same[-1]} again"
    silent = [one.finding for one in event.answers if one.answer == "unanswered"]
    if silent:
        yield "2.5", "coder", f"says nothing to {', '.join(silent)}"


def refusal_signs(role: str, reason: str, said: Sequence[tuple[int, ModelAnswered]]) -> Iterator[Sign]:
    """Why a reply could not be used, as far as the reply itself tells it."""
    words = next((one.answer.text for _, one in reversed(said) if one.role == role), "")
    head = reason.partition("\n")[0]
    if reason.startswith("no answer to F"):
        yield "2.5", role, head
    elif "without a finding" in reason or "say why" in reason or ELISION.search(words):
        yield "2.4", role, head
    elif "is not met" in reason or "did not succeed" in reason:
        yield "3.1", role, head
    elif ASKS.search(words.strip()):
        yield "2.2", role, f"asks, and nobody hears it: {last_line(words)}"
    else:
        yield "1.2", role, head
    if claim := CLAIM.search(prose(words)):
        yield "2.6", role, f"says '{claim[0]}' and brings nothing"
    if over := OVER.search(prose(words)):
        yield "3.1", role, f"says '{over[0].strip()}' and brings nothing"


def end_signs(state: State) -> Iterator[Sign]:
    ended = ending(state)
    if ended is None:
        return
    who = ended.by or "the team"
    if ended.reason == "claimed":
        yield "3.1", who, ended.detail or "the end does not follow from the log"
    if ended.reason == "bound":
        yield "1.5", who, ended.detail
    if ended.reason == "no_progress":
        yield "1.3", who, ended.detail
    unheard = [wish.id for wish in state.plan.wishes if not wish.version]
    if unheard:
        yield "2.5", "coder", f"no version was written for {', '.join(unheard)}"


def word_signs(event: Event, before: State, said: Sequence[tuple[int, ModelAnswered]]) -> Iterator[Sign]:
    """What an answer shows by itself, beside those that its member gave before."""
    if not isinstance(event, ModelAnswered):
        return
    own = [one.answer.text for _, one in said[:-1] if one.role == event.role]
    text, who = event.answer.text, event.role
    yield from repetition_signs(who, text, own)
    yield from plain_signs(who, text)
    asked = " ".join(
        [before.goal, *(item.text for item in before.plan.items), *(wish.text for wish in before.plan.wishes)]
    )
    if before.goal and len(text) >= LONG and subjects(text).isdisjoint(subjects(asked)):
        yield "2.3", who, "nothing in it is about the goal"


def plain_signs(who: str, text: str) -> Iterator[Sign]:
    """What words say in any transcript."""
    words = prose(text)
    if greeting := GREETING.search(words):
        yield "2.1", who, f"'{greeting[0]}'"
    if assumed := ASSUMES.search(words):
        yield "2.2", who, f"'{sentence_around(words, assumed.start())}'"


def subjects(text: str) -> set[str]:
    """What a text is about: its longer words."""
    return {word for word in stems(text) if len(word) >= SHORTEST}


def prose(text: str) -> str:
    """A message without its code."""
    return "".join(text.split(FENCE)[::2])


def last_line(text: str) -> str:
    return cut_middle(text.strip().rpartition("\n")[2], SHOWN)


def sentence_around(text: str, place: int) -> str:
    start = max(text.rfind(".", 0, place), text.rfind("\n", 0, place)) + 1
    return cut_middle(re.split(r"[.\n]", text[start:])[0].strip(), SHOWN)


def unique_suspicions(found: Iterable[Suspicion]) -> list[Suspicion]:
    """Each mode of a member once for the same reason."""
    kept: dict[tuple[str, str, str], Suspicion] = {}
    for one in found:
        kept.setdefault((one.mode, one.who, one.why), one)
    return list(kept.values())


def audit_messages(messages: Sequence[Said]) -> list[Suspicion]:
    """What the words of any transcript let one suspect. The first message is taken for the task."""
    found: list[Suspicion] = []
    task = subjects(messages[0].text) if messages else set[str]()
    for place, message in enumerate(messages):
        if message.output or place == 0:
            continue
        signs = [*plain_signs(message.who, message.text), *message_signs(messages, place, task)]
        found += [Suspicion(mode=mode, message=place + 1, who=who, why=why) for mode, who, why in signs]
    return unique_suspicions([*found, *ending_suspicions(messages)])


def message_signs(messages: Sequence[Said], place: int, task: set[str]) -> Iterator[Sign]:
    message, after = messages[place], messages[place + 1 :]
    who, text = message.who, message.text
    yield from repetition_signs(who, text, [one.text for one in messages[1:place] if one.who == who])
    yield from untrue_signs(message, messages[1:place])
    if len(text) >= LONGER and task and subjects(text).isdisjoint(task):
        yield "2.3", who, "nothing in it is about the task"
    if ELISION.search(text) and FENCE in text:
        yield "2.4", who, "leaves code out"
    if ASKS.search(text.strip()) and (not after or after[0].who == who):
        yield "2.2", who, f"asks, and nobody answers: {last_line(text)}"
    if OVER.search(text) and any(not one.output for one in after):
        yield "1.5", who, "the talk goes on after it was called done"


def repetition_signs(who: str, text: str, own: Sequence[str]) -> Iterator[Sign]:
    """Beside what the member said before."""
    if len(text) < LONG or not own:
        return
    if text == own[0] and len(own) > 1:
        yield "2.1", who, "gives its first answer again"
    elif text in own[-3:]:
        yield "1.3", who, "says the same again"


def untrue_signs(message: Said, before: Sequence[Said]) -> Iterator[Sign]:
    """What is claimed beside what was run."""
    claim, outputs = CLAIM.search(prose(message.text)), [one for one in before if one.output]
    sentence = re.split(r"[.\n]", prose(message.text)[claim.start() :])[0] if claim else ""
    about_tests = re.search(r"\btests?\b", sentence) is not None
    tested = any(TESTED.search(f"{one.text}\n{one.did}") for one in before)
    if claim and not outputs:
        yield "2.6", message.who, f"says '{claim[0]}', and nothing has been run"
    elif claim and outputs[-1].failed:
        yield "2.6", message.who, f"says '{claim[0]}' after an error"
    elif claim and about_tests and not tested:
        yield "2.6", message.who, f"says '{claim[0]}', and no tests have been run"


def ending_suspicions(messages: Sequence[Said]) -> Iterator[Suspicion]:
    """How it ended, and what was run before that."""
    last = next((place for place in range(len(messages) - 1, 0, -1) if not messages[place].output), 0)
    if not last:
        return
    message = messages[last]
    outputs = [one for one in messages[: last + 1] if one.output]
    over = OVER.search(message.text) or CLAIM.search(prose(message.text))

    def sign(mode: FailureMode, why: str) -> Suspicion:
        return Suspicion(mode=mode, message=last + 1, who=message.who, why=why)

    if over and not outputs:
        yield sign("3.2", "called done, and nothing was ever run")
    elif over and outputs[-1].failed:
        yield sign("3.3", "called done, and the last output tells of an error")
    elif not over:
        yield sign("3.1", "it ends without a result")


def audit_text(text: str) -> list[Suspicion]:
    """What a transcript shows, whatever program wrote it. Raises BadUsage for what is none."""
    if '"type":"septet.' in text[:2000].replace(" ", ""):
        return audit_log(
            [decode(line) for line in text.splitlines() if '"type":"septet.' in line.replace(" ", "")]
        )
    return audit_messages(read_messages(text))


def read_messages(text: str) -> list[Said]:
    documents = list(documents_of(text))
    found = [message for document in documents for message in messages_in(document)]
    if len(found) < 2:
        raise BadUsage("that is no transcript", f"give {FORMS}")
    return found


def documents_of(text: str) -> Iterator[object]:
    """One JSON document, or one a line."""
    try:
        yield msgspec.json.decode(text)
    except msgspec.DecodeError:
        for line in filter(str.strip, text.splitlines()):
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise BadUsage(f"that is no JSON ({error})", f"give {FORMS}") from error


def messages_in(document: object) -> Iterator[Said]:
    if is_list(document):
        for one in document:
            yield from messages_in(one) if is_object(one) and holds_messages(one) else parse_messages(one)
        return
    if not is_object(document):
        return
    if is_list(steps := document.get("trajectory")):
        yield from trajectory_task(document)
        for step in steps:
            yield from step_messages(step)
    elif is_list(messages := document.get("messages", document.get("chat_history", document.get("history")))):
        own = "trajectory_format" in document or "exit_status" in str(document.get("info", ""))
        yield from (as_output(one) for one in observed(messages_in(messages), own))
    else:
        yield from parse_messages(document)


def holds_messages(one: Object) -> bool:
    return any(is_list(one.get(key)) for key in ("messages", "chat_history", "history", "trajectory"))


def observed(messages: Iterator[Said], own: bool) -> Iterator[Said]:
    """In trajectories the user's messages after the task are what commands have answered."""
    asked = False
    for one in messages:
        is_output = own and one.who == "user" and asked
        asked = asked or one.who == "user"
        yield Said(who="environment", text=one.text, output=True) if is_output else one


def as_output(one: Said) -> Said:
    return Said(who=one.who, text=one.text, output=True, failed=has_failed(one.text)) if one.output else one


def trajectory_task(document: Object) -> Iterator[Said]:
    """What a trajectory was about: its history has it, where there is one."""
    history = document.get("history")
    said = list(messages_in(history)) if is_list(history) else []
    yield next(
        (one for one in said if one.who == "user"),
        Said(who="user", text=str(document.get("problem_statement", "the task"))),
    )


def step_messages(step: object) -> Iterator[Said]:
    """A step of a trajectory: what the agent says and does, and what comes of it."""
    if not is_object(step):
        return
    words = step.get("response") or f"{step.get('thought', '')}\n{step.get('action', '')}"
    yield Said(who="agent", text=content_text(words), did=str(step.get("action") or ""))
    if observation := content_text(step.get("observation", "")):
        yield Said(who="environment", text=observation, output=True, failed=has_failed(observation))


def parse_messages(one: object) -> Iterator[Said]:
    if not is_object(one):
        return
    role, name = str(one.get("role") or ""), str(one.get("name") or one.get("source") or "")
    text = content_text(one.get("content"))
    if role == "system" or not (role or name):
        return
    kind = str(one.get("type") or one.get("message_type") or "")
    output = role in OUTPUTS or name in OUTPUTS or "ExecutionEvent" in kind or text.startswith("exitcode:")
    if text or one.get("tool_calls"):
        did = str(one.get("tool_calls") or "")
        yield Said(who=name or role, text=text, output=output, failed=output and has_failed(text), did=did)


def content_text(content: object) -> str:
    """The text of a message, of its parts, or of what a tool has answered."""
    if is_list(content):
        return "\n".join(filter(None, map(content_text, content)))
    if is_object(content):
        return content_text(content.get("text") or content.get("content") or "")
    return content if isinstance(content, str) else ""


def has_failed(text: str) -> bool:
    code = EXIT.search(text)
    if code is not None:
        return next(filter(None, code.groups())) != "0"
    return ERROR.search(text) is not None


def is_list(one: object) -> TypeGuard[Sequence[object]]:
    return isinstance(one, list)


def is_object(one: object) -> TypeGuard[Object]:
    return isinstance(one, dict)
