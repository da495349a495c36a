"""Tasks of a suite done by one answer of a model, or by a team, and judged by their hidden tests.

Every result is on disk before the next one counts: a second call goes on where the first was stopped. Hidden tests
are run on a copy of the result, and are never in a prompt or a workspace.
"""

import ast
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from septet.common.temporary import temporary_folder
from septet.common.values import Value
from septet.domain.events import ModelAnswered
from septet.domain.files import is_test
from septet.domain.messages import Answer, Message, Request
from septet.domain.plans import Refusal
from septet.domain.pytest_report import PYTEST
from septet.domain.replies import code_files
from septet.domain.runs import Job, Limits, RunResult
from septet.domain.state import State
from septet.domain.teams import TeamSpec
from septet.errors import BadUsage, SeptetError
from septet.evaluation.report import Mode, TaskResult
from septet.evaluation.suites import MODULE, EvalTask, git
from septet.ports import Model, Sandbox
from septet.team.goal_examples import wanted_names
from septet.team.small_form import functions_of
from septet.team.sorting import read_reply
from septet.ways.endings import ending
from septet.ways.table import way_of
from septet.wiring.session import Session

SINGLE = """\
You write Python. Answer with one Python code block that defines what is asked for, and nothing else: no tests, no
examples, no explanation."""
LONGEST_ANSWER = 1024
LONGEST_GIVEN = 60_000
"""Characters of files that one answer is shown."""
JUDGE_SECONDS = 60.0
JUDGE_MEMORY = 4 << 30
SETTINGS = frozenset({"pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"})
"""Files that change how tests are run."""

Tell = Callable[[str], None]


class Head(Value, omit_defaults=False):
    """The first line of a file of results: what they are results of."""

    suite: str
    model: str
    team: str

    @property
    def file_name(self) -> str:
        return re.sub(r"[^\w.-]+", "-", f"{self.suite}-{self.model or 'own'}-{self.team}") + ".jsonl"


class ResultFile:
    """Results as they come, one JSON line each."""

    def __init__(self, path: Path, head: Head) -> None:
        self.path = path
        self.results: list[TaskResult] = []
        if path.exists():
            self._read(head)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(head) + b"\n")

    def _read(self, head: Head) -> None:
        first, *rest = self.path.read_bytes().splitlines()
        try:
            if msgspec.json.decode(first, type=Head) != head:
                raise BadUsage(f"{self.path} holds results of something else", "name another file with --out")
            self.results = results_in(rest)
        except msgspec.MsgspecError as error:
            raise BadUsage(
                f"{self.path} holds no results ({error})", "name another file with --out"
            ) from error

    def add(self, result: TaskResult) -> None:
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")
        self.results.append(result)

    def has(self, task: EvalTask, mode: Mode) -> bool:
        return any((one.task, one.mode) == (task.id, mode) for one in self.results)


def results_in(lines: Sequence[bytes]) -> list[TaskResult]:
    """A line that a kill has cut is none."""
    return [msgspec.json.decode(line, type=TaskResult) for line in lines if line.endswith(b"}")]


def read_results(path: Path) -> list[TaskResult]:
    """Results of an earlier call, whatever they are results of."""
    try:
        return results_in(path.read_bytes().splitlines()[1:])
    except (OSError, msgspec.MsgspecError) as error:
        raise BadUsage(f"{path} holds no results ({error})", "name a file that --out wrote") from error


class Evaluation:
    """A team and its model, measured by tasks."""

    def __init__(self, session: Session, sandbox: Sandbox, team: TeamSpec, file: ResultFile) -> None:
        self._session = session
        self._sandbox = sandbox
        self._team = replace(team, approve="auto")
        self._file = file

    async def run(self, tasks: Sequence[EvalTask], modes: Sequence[Mode], at_once: int, tell: Tell) -> None:
        """All that is not in the file yet, so many at once."""
        waiting: list[tuple[EvalTask, Mode]] = [
            (task, mode) for task in tasks for mode in modes if not self._file.has(task, mode)
        ]
        limiter, started = anyio.CapacityLimiter(at_once), time.monotonic()
        finished: list[TaskResult] = []

        async def one(task: EvalTask, mode: Mode) -> None:
            async with limiter:
                result = await (self.single(task) if mode == "single" else self.team(task))
            self._file.add(result)
            finished.append(result)
            left = (time.monotonic() - started) / len(finished) * (len(waiting) - len(finished))
            verdict = "passes" if result.passed else f"fails ({result.detail[:60]})"
            tell(f"{len(finished)}/{len(waiting)} {task.id} {mode} {verdict}, about {left:.0f} s left")

        async with anyio.create_task_group() as group:
            for pair in waiting:
                group.start_soon(one, *pair)

    async def single(self, task: EvalTask) -> TaskResult:
        """One answer to the goal as it is."""
        asked = Message(role="user", text=goal_text(task))
        messages = (Message(role="system", text=SINGLE), asked)
        request = Request(role="coder", step=1, messages=messages, temperature=0.0, max_tokens=LONGEST_ANSWER)
        try:
            answer = await final_answer(self._session.models.open(coder_model(self._team)), request)
        except SeptetError as error:
            return TaskResult(task=task.id, mode="single", passed=False, detail=str(error))
        files, cause = files_in(task, answer.text)
        passed, detail = (False, cause) if cause else await judge(task, files, self._sandbox)
        return TaskResult(
            task=task.id,
            mode="single",
            passed=passed,
            detail=detail,
            calls=1,
            tokens=answer.usage.total,
            cost=answer.cost or 0.0,
            seconds=answer.seconds,
            replies=1,
            unreadable={cause: 1} if cause else {},
        )

    async def team(self, task: EvalTask) -> TaskResult:
        """A chat that can be opened afterwards like any other; one that was interrupted goes on."""
        chat = chat_name(self._file.path, task)
        known = {head.chat for head in await self._session.store.chats()}
        error = ""
        try:
            if chat not in known:
                await self._session.start(task.goal, self._team, await self._folder(task, chat), chat)
            async for _ in self._session.perform(chat, self._sandbox):
                pass
        except SeptetError as failed:
            error = str(failed)
        state = await self._session.state(chat)
        passed, detail = await judge(task, await self._texts(task, state), self._sandbox)
        replies, unreadable = unreadable_replies(state)
        ended = ending(state)
        return TaskResult(
            task=task.id,
            mode="team",
            passed=passed,
            status="error" if error or ended is None else ended.reason,
            detail=error or detail,
            chat=chat,
            calls=state.spending.total.answers,
            tokens=state.spending.total.usage.total,
            cost=state.spending.total.cost,
            seconds=state.spending.seconds,
            replies=replies,
            unreadable=unreadable,
        )

    async def _folder(self, task: EvalTask, chat: str) -> Path | None:
        """The task's own files are the person's: the chat works in a folder that holds them already."""
        if not task.files:
            return None
        folder = self._file.path.parent / "folders" / chat
        await anyio.to_thread.run_sync(write_task_files, folder, task.files)
        if task.targets:  # about a repository, as the person has it
            await anyio.to_thread.run_sync(commit_all, folder)
        return folder.absolute()

    async def _texts(self, task: EvalTask, state: State) -> dict[str, str]:
        """The newest version over what was given."""
        version = state.work.version
        if version is None:
            return {}
        contents = {file.path: await self._session.blobs.get(file.sha256) for file in version.files}
        texts = {path: content.decode(errors="replace") for path, content in contents.items()}
        return {path: text for path, text in {**task.files, **texts}.items() if path not in version.deleted}

    def results(self, tasks: Sequence[EvalTask]) -> list[TaskResult]:
        chosen = {task.id for task in tasks}
        return [one for one in self._file.results if one.task in chosen]


async def final_answer(model: Model, request: Request) -> Answer:
    async for piece in model.answer(request):
        if isinstance(piece, Answer):
            return piece
    raise AssertionError("a model ends with its answer or raises")


def commit_all(folder: Path) -> None:
    who = ("-c", "user.name=Septet", "-c", "user.email=septet@example.org")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, *who, "commit", "-q", "--no-verify", "-m", "As given")


def goal_text(task: EvalTask) -> str:
    """What is asked with the files that it is about: those that it names, or all, as far as they fit."""
    named = {path: text for path, text in task.files.items() if path in task.goal}
    given: list[str] = []
    for path, text in (named or task.files).items():
        if sum(map(len, given)) + len(text) < LONGEST_GIVEN:
            given.append(f"{path}:\n```python\n{text}```")
    return "\n\n".join([task.goal, *given])


def coder_model(team: TeamSpec) -> tuple[str, ...]:
    thinkers = way_of(team).thinkers(team)
    return next((one.model for one in thinkers if one.role == "coder"), thinkers[0].model)


def files_in(task: EvalTask, reply: str) -> tuple[dict[str, str], str]:
    """The files of a single answer, and why there are none."""
    if task.files:
        only = next(iter(task.files)) if len(task.files) == 1 else ""
        sent = code_files(reply, only=only, before=task.files)
        if isinstance(sent, Refusal):
            return {}, "no files"
        return {**task.files, **{file.path: file.text for file in sent}}, ""
    wanted = [task.entry] if task.entry else wanted_names(task.goal)
    reading = read_reply(reply, wanted, MODULE)
    return ({f"{MODULE}.py": reading.module}, "") if not reading.cause else ({}, reading.cause)


async def judge(task: EvalTask, files: Mapping[str, str], sandbox: Sandbox) -> tuple[bool, str]:
    """Whether the hidden tests pass on a copy of the result, and what they say if not."""
    if not files:
        return False, "no files"
    with temporary_folder("evaluation") as folder:
        await anyio.to_thread.run_sync(write_task_files, folder, {**judged_files(task, files), **task.tests})
        limits = Limits(seconds=JUDGE_SECONDS, memory=JUDGE_MEMORY)
        job = Job(command=(*PYTEST, *task.targets), workspace=str(folder), limits=limits, tests=True)
        result = await sandbox.run(job)
    report = result.report
    missing = [target for target in task.targets if not report.about(target).passed]
    passed = (
        result.succeeded and report.complete and bool(report.passed) and not report.failed and not missing
    )
    return passed, "" if passed else failure_text(result)


def failure_text(result: RunResult) -> str:
    """Why hidden tests did not pass; what pytest printed last where none ran."""
    if result.stopped_by:
        return f"stopped by the {result.stopped_by} limit"
    lines = [line for line in (result.stdout + "\n" + result.stderr).splitlines() if line.strip()]
    return result.report.counts or f"no test ran: {lines[-1] if lines else 'nothing was printed'}"


def judged_files(task: EvalTask, files: Mapping[str, str]) -> dict[str, str]:
    """The result without tests and settings of its own; what defines the entry can be imported by a known name."""
    given = task.files.keys() - task.tests.keys()
    kept = {
        path: text
        for path, text in files.items()
        if path in given or not (is_test(path) or path.rsplit("/", 1)[-1] in SETTINGS)
    }
    target = f"{MODULE}.py"
    if task.entry and not defines(kept.get(target, ""), task.entry):
        found = [text for text in kept.values() if defines(text, task.entry)]
        kept |= {target: found[0]} if found else {}
    return kept


def defines(text: str, name: str) -> bool:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bound = {
        one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    assigned = {
        target.id
        for one in body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    return name in bound | assigned


def write_task_files(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def chat_name(results: Path, task: EvalTask) -> str:
    """The same for the same task of the same results, and nobody else's."""
    words = re.sub(r"[^a-z0-9]+", "-", task.id.lower()).strip("-")[:30]
    return f"eval-{words}-{sha256(f'{results.absolute()} {task.id}'.encode()).hexdigest()[:8]}"


def unreadable_replies(state: State) -> tuple[int, dict[str, int]]:
    """How many replies should have held code, and the causes of those that did not."""
    coder = next((one for one in state.team.members if one.role == "coder"), None)
    if coder is None:
        return 0, {}
    said = [one for one in state.talk.messages if isinstance(one, ModelAnswered) and one.role == coder.name]
    if coder.form != "small":
        refused = state.floor.refused_turn_counts.get(coder.name, 0)
        return len(said), {"refused": refused} if refused else {}
    texts = [text for one in said for text in one.answer.texts]
    causes = [read_reply(text, functions_of(state)).cause for text in texts]
    return len(texts), dict(Counter(cause for cause in causes if cause))


def cpu_seconds() -> float:
    """Of this process and of the programs that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
