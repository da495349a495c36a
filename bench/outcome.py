"""The same tasks, model server and longest answer: one answer, several with tests, peers, and Septet.

Run: python bench/outcome.py SUITE http://HOST:PORT/v1#MODEL [--tasks 20] [--seed 1] [--list FILE] [--who NAMES]
         [--jobs 1] [--unboxed] [--keep FOLDER] [--out FILE]

Everybody asks through a proxy that counts answers and tokens and bounds an answer, so that nobody counts for himself.
Peers run in environments of their own (`environments.py`) and in a box (`box.py`: bubblewrap, or our own by the same
rules) which lets them write nothing but the folder of their task. What they leave, a file or the last block of code
that defines what was asked for, is judged by the task's hidden tests, as Septet's is. Results are written as they come;
a second call with the same FILE goes on. With `--jobs`, so many attempts run at once, task by task, so that everybody
meets the same load. Septet works with the team that a small local model gets (`small_team.py`).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from time import monotonic

import aiohttp
import anyio
import msgspec
from aiohttp import web
from box import Box, choose_box, command_in
from environments import interpreter, readable_folders
from small_team import write_small_team

from septet.common.values import Value
from septet.domain.files import is_test
from septet.domain.runs import Job, Limits
from septet.evaluation.report import interval, sign_test
from septet.evaluation.runs import SINGLE, defines, files_in, judge
from septet.evaluation.suites import MODULE, EvalTask, read_suite, sample_tasks
from septet.ports import Sandbox
from septet.wiring.session import open_session

PEERS: dict[str, tuple[str, ...]] = {
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
    "smolagents": ("smolagents[openai]==1.26.0",),
    "mini": ("mini-swe-agent==2.4.6",),
}
SCRIPTS = Path(__file__).absolute().parent / "peers"
DRAWS = 8
LONGEST_ANSWER = 1024
SECONDS = 600.0
"""For one task, whoever does it; what is there by then is judged."""
ASK_TESTS = """\
You write tests. Answer with one Python code block that holds plain assert statements, one a line, for the function that
is described, and nothing else: do not define the function."""


class Spent(msgspec.Struct):
    answers: int = 0
    refused: int = 0
    prompt: int = 0
    said: int = 0


class Outcome(Value):
    who: str
    task: str
    passed: bool
    detail: str = ""
    claimed: bool = False
    """Septet alone says whether it is done."""
    answers: int = 0
    refused: int = 0
    """Requests that the server did not answer, such as those longer than its context."""
    prompt: int = 0
    said: int = 0
    seconds: float = 0.0


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Choice(msgspec.Struct):
    index: int = 0


class Piece(msgspec.Struct):
    usage: Usage | None = None
    choices: list[Choice] = []


class Proxy:
    """Passes requests on to the model's server, and books them under the first part of their path."""

    def __init__(self, upstream: str, client: aiohttp.ClientSession) -> None:
        self._upstream, self._client = upstream, client
        self.spent: dict[str, Spent] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["key"]
        body: dict[str, object] = msgspec.json.decode(await request.read() or b"{}")
        if body.get("messages"):
            body.pop("max_completion_tokens", None)
            asked = body.get("max_tokens")
            body["max_tokens"] = min(asked, LONGEST_ANSWER) if isinstance(asked, int) else LONGEST_ANSWER
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        url = f"{self._upstream}/{request.match_info['tail']}"
        async with self._client.request(request.method, url, data=msgspec.json.encode(body)) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            whole = bytearray()
            with suppress(ConnectionResetError):  # who does not wait for its answer has cost it all the same
                await response.prepare(request)
            async for chunk in answer.content.iter_any():
                whole += chunk
                with suppress(ConnectionResetError):
                    await response.write(chunk)
        if "messages" in body:
            self.book(self.spent.setdefault(key, Spent()), answer.status, bytes(whole))
        return response

    def book(self, spent: Spent, status: int, said: bytes) -> None:
        if status != HTTPStatus.OK:
            spent.refused += 1
            return
        lines = [line.removeprefix(b"data: ") for line in said.splitlines() if line.startswith(b"data: {")]
        pieces = [msgspec.json.decode(text, type=Piece) for text in lines or [said]]
        spent.answers += max((one.index + 1 for piece in pieces for one in piece.choices), default=0)
        for piece in pieces:
            if piece.usage:
                spent.prompt += piece.usage.prompt_tokens
                spent.said += piece.usage.completion_tokens


@asynccontextmanager
async def counting_proxy(upstream: str) -> AsyncGenerator[tuple[Proxy, str]]:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout, connector=connector) as client:
        proxy = Proxy(upstream, client)
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{key}/v1/{tail:.*}", proxy.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield proxy, "http://{}:{}".format(*runner.addresses[0][:2])
        finally:
            await runner.cleanup()


class Attempt(Value):
    """What everybody is given."""

    task: EvalTask
    url: str
    model: str
    folder: Path
    sandbox: Sandbox
    box: Box


async def ask(attempt: Attempt, system: str, temperature: float) -> str:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": attempt.task.goal}]
    body = {"model": attempt.model, "messages": messages, "temperature": temperature}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{attempt.url}/chat/completions", json=body) as answer,
    ):
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise RuntimeError(f"the server fails: {await answer.text()}")
        whole = await answer.json()
    return whole["choices"][0]["message"]["content"] or "" if "choices" in whole else ""


async def single(attempt: Attempt) -> dict[str, str]:
    return files_in(attempt.task, await ask(attempt, SINGLE, 0.0))[0]


async def best_of_n(attempt: Attempt) -> dict[str, str]:
    """Of several answers the one that passes most of the asserts that the same model gives; the first one of these."""
    programs = [
        files_in(attempt.task, await ask(attempt, SINGLE, 0.8 if n else 0.0))[0] for n in range(DRAWS)
    ]
    said = await ask(attempt, ASK_TESTS, 0.0)
    asserts = [line.strip() for line in said.splitlines() if line.strip().startswith("assert ")]
    best, most = programs[0], -1
    for program in programs:
        if program and (passed := await count_passed(program, asserts, attempt.sandbox)) > most:
            best, most = program, passed
    return best


COUNT = """\
import sys
from {module} import *
passed = 0
for line in {asserts!r}:
    try:
        exec(line)
        passed += 1
    except Exception:
        pass
print(f"passed {{passed}}")
"""


async def count_passed(program: Mapping[str, str], asserts: Sequence[str], sandbox: Sandbox) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in program.items():
            await anyio.Path(folder, path).write_text(text)
        code = COUNT.format(module=MODULE, asserts=list(asserts))
        job = Job(command=("python", "-c", code), workspace=folder, limits=Limits(seconds=10))
        result = await sandbox.run(job)
    words = result.stdout.split()
    return int(words[-1]) if result.succeeded and words[-2:-1] == ["passed"] else 0


async def peer(name: str, attempt: Attempt) -> dict[str, str]:
    """What a program of its own has left in the folder, or said last."""
    script = SCRIPTS / f"{name}_task.py"
    python = await anyio.to_thread.run_sync(interpreter, name, PEERS[name])
    readable = [*readable_folders(), script.parent]
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {**kept, "HOME": str(attempt.folder), "URL": attempt.url, "MODEL": attempt.model}
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no list of prices from elsewhere
    await run_program(
        attempt, command_in(attempt.box, attempt.folder, readable, (python, str(script))), environment
    )
    return left_by(attempt, (attempt.folder.parent / "said.txt").read_text(errors="replace"))


async def run_program(attempt: Attempt, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """To its end or to the end of its time. What it prints is kept beside the folder of the task."""
    place = attempt.folder.parent
    with (place / "said.txt").open("wb") as said, (place / "errors.txt").open("wb") as errors:
        with anyio.move_on_after(SECONDS):
            done = await anyio.run_process(
                command,
                input=attempt.task.goal.encode(),
                stdout=said,
                stderr=errors,
                cwd=attempt.folder,
                env=environment,
                check=False,
            )
            (place / "exit.txt").write_text(str(done.returncode))


def left_by(attempt: Attempt, said: str) -> dict[str, str]:
    """The file that defines what was asked for, or else the last block of code that does.

    It is read as a single answer is: asserts that stand beside the definitions are no part of the program.
    """
    texts = {path.name: path.read_text(errors="replace") for path in sorted(attempt.folder.glob("*.py"))}
    texts = {name: text for name, text in texts.items() if not is_test(name)}
    blocks = [block.split("\n", 1)[-1] for block in said.split("```")[1::2]]
    candidates = [texts.get(f"{MODULE}.py", ""), *reversed(blocks), *texts.values()]
    for text in candidates:
        if defines(text, attempt.task.entry):
            files, cause = files_in(attempt.task, f"```python\n{text}\n```\n")
            return {f"{MODULE}.py": text} if cause else files
    return {}


async def septet(attempt: Attempt) -> dict[str, str]:
    """The command line, as anybody would call it."""
    place, work = attempt.folder.parent, attempt.folder / "work"
    team = write_small_team(place / "small.yaml")
    command = [sys.executable, "-m", "septet", "run", attempt.task.goal, "--yes", "-q", "-t", str(team)]
    command += ["-C", str(work), "-m", f"url:{attempt.url}#{attempt.model}"]
    await run_program(attempt, command, {**os.environ, "SEPTET_HOME": str(place / "home")})
    return {
        path.name: path.read_text(errors="replace") for path in work.glob("*.py") if not is_test(path.name)
    }


Do = Callable[[Attempt], Awaitable[dict[str, str]]]
WHO: dict[str, Do] = {
    "single": single,
    f"best-of-{DRAWS}": best_of_n,
    **{name: partial(peer, name) for name in PEERS},
    "septet": septet,
}


class Comparison:
    """Who is compared, on what, and what is known already."""

    def __init__(self, given: argparse.Namespace, proxy: tuple[Proxy, str], sandbox: Sandbox) -> None:
        self._model: str = given.server.partition("#")[2]
        self._out, self._keep = Path(given.out), given.keep
        self._box: Box = choose(given)
        self._books, self._address = proxy
        self._sandbox = sandbox
        self.outcomes = read_outcomes(self._out)

    async def run(self, tasks: Sequence[EvalTask], names: Sequence[str], jobs: int) -> None:
        """All that is not known yet, so many at once."""
        known = {(one.who, one.task) for one in self.outcomes}
        waiting = [(who, task) for task in tasks for who in names if (who, task.id) not in known]
        limiter = anyio.CapacityLimiter(jobs)

        async def one(number: int, who: str, task: EvalTask) -> None:
            async with limiter:
                outcome = await self._attempt(f"{number}", who, task)
            self._add(outcome)

        async with anyio.create_task_group() as group:
            for number, (who, task) in enumerate(waiting):
                group.start_soon(one, number, who, task)

    def _add(self, one: Outcome) -> None:
        self.outcomes.append(one)
        with self._out.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")
        verdict = "right" if one.passed else f"wrong ({one.detail[:100]})"
        print(
            f"{len(self.outcomes)} {one.task} {one.who}: {verdict}, {one.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )

    async def _attempt(self, key: str, who: str, task: EvalTask) -> Outcome:
        started = monotonic()
        with tempfile.TemporaryDirectory(prefix=f"outcome-{who}-", ignore_cleanup_errors=True) as place:
            folder = Path(place) / "task"
            folder.mkdir()
            attempt = Attempt(
                task=task,
                url=f"{self._address}/{key}/v1",
                model=self._model,
                folder=folder,
                sandbox=self._sandbox,
                box=self._box,
            )
            files = await WHO[who](attempt)
            seconds = monotonic() - started
            passed, detail = await judge(task, files, self._sandbox)
            if not files:
                detail = f"{detail}: {text_of(Path(place, 'errors.txt')).strip()[-200:]}"
            if self._keep:
                keep_words(Path(place), Path(self._keep), f"{who}-{task.id}".replace("/", "-"))
            claimed = who == "septet" and text_of(Path(place, "exit.txt")) == "0"
        spent = self._books.spent.get(key, Spent())
        return Outcome(
            who=who,
            task=task.id,
            passed=passed,
            detail=detail,
            claimed=claimed,
            answers=spent.answers,
            refused=spent.refused,
            prompt=spent.prompt,
            said=spent.said,
            seconds=seconds,
        )


def keep_words(place: Path, folder: Path, name: str) -> None:
    """What a program printed, to be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("said", "errors"):
        if said := text_of(place / f"{kind}.txt"):
            (folder / f"{name}.{kind}.txt").write_text(said)


def choose(given: argparse.Namespace) -> Box:
    if not set(given.who.split(",")) & PEERS.keys():
        return "none"
    return "none" if given.unboxed else choose_box()


def text_of(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def read_outcomes(path: Path) -> list[Outcome]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Outcome) for line in lines if line.endswith(b"}")]


COLUMNS = (
    "who",
    "right",
    "95 %",
    "only this / only Septet right (p)",
    "answers a task",
    "refused",
    "tokens read / said a task",
    "× tokens of one answer",
    "s a task",
)


def table(outcomes: Sequence[Outcome], names: Sequence[str]) -> str:
    """Only tasks that everybody has tried."""
    tried = [{one.task for one in outcomes if one.who == who} for who in names]
    common = set[str].intersection(*tried) if tried else set[str]()
    by_name = {
        who: {one.task: one for one in outcomes if one.who == who and one.task in common} for who in names
    }
    first = sum(one.prompt + one.said for one in by_name.get("single", by_name[names[0]]).values())
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    lines += [
        f"| {' | '.join(row(who, own, by_name.get('septet'), first))} |" for who, own in by_name.items()
    ]
    return "\n".join([*lines, "", claims(by_name.get("septet", {}).values())])


def row(
    who: str, own: Mapping[str, Outcome], septets: Mapping[str, Outcome] | None, first: int
) -> tuple[str, ...]:
    """`first` is the tokens of one answer, or of who stands first."""
    right, count = sum(one.passed for one in own.values()), max(len(own), 1)
    low, high = interval(right, count)
    read, said = sum(one.prompt for one in own.values()), sum(one.said for one in own.values())
    return (
        who,
        f"{right} of {len(own)} ({100 * right / count:.1f} %)",
        f"{100 * low:.0f} to {100 * high:.0f} %",
        beside(own, septets) if septets and who != "septet" else "",
        f"{sum(one.answers for one in own.values()) / count:.1f}",
        f"{sum(one.refused for one in own.values())}",
        f"{read / count:.0f} / {said / count:.0f}",
        f"{(read + said) / first if first else 0.0:.1f}",
        f"{sum(one.seconds for one in own.values()) / count:.0f}",
    )


def beside(own: Mapping[str, Outcome], septets: Mapping[str, Outcome]) -> str:
    """Tasks that only one of the two has right, and McNemar's exact test."""
    only_own = sum(one.passed and not septets[task].passed for task, one in own.items())
    only_septet = sum(septets[task].passed and not one.passed for task, one in own.items())
    return f"{only_own} / {only_septet} ({sign_test(only_own, only_septet):.2g})"


def claims(septets: Collection[Outcome]) -> str:
    """What *done* is worth."""
    claimed = [one for one in septets if one.claimed]
    wrong, right = sum(not one.passed for one in claimed), sum(one.passed for one in septets)
    return (
        f"Septet called {len(claimed)} of {len(septets)} done; of these {wrong} are wrong"
        f" ({100 * wrong / max(len(claimed), 1):.1f} %); of its {right} right ones {len(claimed) - wrong}"
        f" are called done ({100 * (len(claimed) - wrong) / max(right, 1):.0f} %)."
    )


def chosen_tasks(given: argparse.Namespace) -> list[EvalTask]:
    """The tasks of a list, in the suite's order, or so many by a seed."""
    tasks = read_suite(given.suite)
    if not given.list:
        return sample_tasks(tasks, given.tasks, given.seed)
    wanted = set(Path(given.list).read_text().split())
    if missing := wanted - {task.id for task in tasks}:
        sys.exit(f"{given.suite} has no {', '.join(sorted(missing))}")
    return [task for task in tasks if task.id in wanted]


async def run(given: argparse.Namespace) -> None:
    names = given.who.split(",")
    async with open_session() as session, counting_proxy(given.server.partition("#")[0]) as proxy:
        comparison = Comparison(given, proxy, await session.sandbox(False))
        await comparison.run(chosen_tasks(given), names, given.jobs)
    print(table(comparison.outcomes, names))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite")
    parser.add_argument("server", metavar="URL#MODEL")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", help="a file with the ids of the tasks, instead of --tasks and --seed")
    parser.add_argument("--jobs", type=int, default=1, help="attempts at once")
    parser.add_argument(
        "--unboxed", action="store_true", help="peers with your rights: on a machine to throw away"
    )
    parser.add_argument("--who", default=",".join(WHO))
    parser.add_argument("--keep", help="a folder for what each program printed")
    parser.add_argument("--out", default="outcome.jsonl")
    given = parser.parse_args()
    for name in set(given.who.split(",")) & PEERS.keys():
        interpreter(name, PEERS[name])
    anyio.run(run, given)


if __name__ == "__main__":
    main()
