"""The same tasks, model server and longest answer: one answer, several with tests, peers, and Septet.

Run: python bench/outcome.py SUITE http://HOST:PORT/v1#MODEL [--tasks 20] [--seed 1] [--who NAMES] [--out FILE]

Everybody asks through a proxy that counts answers and tokens and bounds an answer, so that nobody counts for himself.
Peers run in environments of their own (`environments.py`) and in bubblewrap, which lets them write nothing but the
folder of their task. What they leave, a file or the last block of code that defines what was asked for, is judged by
the task's hidden tests, as Septet's is. Results are written as they come; a second call with the same FILE goes on.
Septet works with the team that a small local model gets.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic

import aiohttp
import anyio
import msgspec
from aiohttp import web
from environments import CACHE, interpreter

from septet.common.values import Value
from septet.domain.files import is_test
from septet.domain.runs import Job, Limits
from septet.evaluation.report import interval
from septet.evaluation.runs import SINGLE, defines, files_in, judge
from septet.evaluation.suites import MODULE, EvalTask, read_suite, sample_tasks
from septet.ports import Sandbox
from septet.wiring.session import open_session

PEERS: dict[str, tuple[str, ...]] = {
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
    "smolagents": ("smolagents[openai]==1.26.0",),
    "mini": ("mini-swe-agent==2.4.6",),
}
DRAWS = 8
LONGEST_ANSWER = 1024
SECONDS = 600.0
"""For one task."""
ASK_TESTS = """\
You write tests. Answer with one Python code block that holds plain assert statements, one a line, for the function that
is described, and nothing else: do not define the function."""
TEAM = """\
name: small
members:
- {role: planner, form: small}
- {role: coder, form: small, candidates: 6}
- {role: runner}
- {role: reviewer, form: small}
"""


class Spent(msgspec.Struct):
    answers: int = 0
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
    prompt: int = 0
    said: int = 0
    seconds: float = 0.0


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Piece(msgspec.Struct):
    usage: Usage | None = None


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
            body["max_tokens"] = LONGEST_ANSWER
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        url = f"{self._upstream}/{request.match_info['tail']}"
        async with self._client.request(request.method, url, data=msgspec.json.encode(body)) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            whole = bytearray()
            async for chunk in answer.content.iter_any():
                whole += chunk
                await response.write(chunk)
        if answer.status == 200 and "messages" in body:
            self._book(key, bytes(whole))
        return response

    def _book(self, key: str, said: bytes) -> None:
        spent = self.spent.setdefault(key, Spent())
        spent.answers += 1
        lines = [line.removeprefix(b"data: ") for line in said.splitlines() if line.startswith(b"data: {")]
        for text in lines or [said]:
            if usage := msgspec.json.decode(text, type=Piece).usage:
                spent.prompt += usage.prompt_tokens
                spent.said += usage.completion_tokens


@asynccontextmanager
async def counting_proxy(upstream: str) -> AsyncGenerator[tuple[Proxy, str]]:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with aiohttp.ClientSession(headers=headers, timeout=timeout) as client:
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


async def ask(attempt: Attempt, system: str, temperature: float) -> str:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": attempt.task.goal}]
    body = {"model": attempt.model, "messages": messages, "temperature": temperature}
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{attempt.url}/chat/completions", json=body) as answer,
    ):
        whole = await answer.json()
    return whole["choices"][0]["message"]["content"] or ""


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
    script = Path(__file__).parent / "peers" / f"{name}_task.py"
    python = await anyio.to_thread.run_sync(interpreter, name, PEERS[name])
    command = [*boxed(attempt.folder, script.parent), python, str(script)]
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = {**kept, "HOME": str(attempt.folder), "URL": attempt.url, "MODEL": attempt.model}
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no list of prices from elsewhere
    with anyio.move_on_after(SECONDS):
        done = await anyio.run_process(
            command, input=attempt.task.goal.encode(), cwd=attempt.folder, env=environment, check=False
        )
        (attempt.folder / "said.txt").write_bytes(done.stdout)
        (attempt.folder / "errors.txt").write_bytes(done.stderr)
        return left_by(attempt, done.stdout.decode(errors="replace"))
    return {}


def boxed(folder: Path, scripts: Path) -> list[str]:
    """Bubblewrap's command: nothing can be written but the folder. The network stays, for the model is there."""
    tree = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    seen = [word for path in (CACHE, scripts) for word in ("--ro-bind", str(path), str(path))]
    return [
        "bwrap",
        *tree,
        *seen,
        "--bind",
        str(folder),
        str(folder),
        "--unshare-pid",
        "--unshare-ipc",
        "--die-with-parent",
        "--",
    ]


def left_by(attempt: Attempt, said: str) -> dict[str, str]:
    """The file that defines what was asked for, or else the last block of code that does."""
    texts = {path.name: path.read_text(errors="replace") for path in sorted(attempt.folder.glob("*.py"))}
    texts = {name: text for name, text in texts.items() if not is_test(name)}
    written = [
        text for name, text in texts.items() if defines(text, attempt.task.entry) and name == f"{MODULE}.py"
    ]
    blocks = [block.split("\n", 1)[-1] for block in said.split("```")[1::2]]
    found = [block for block in blocks if defines(block, attempt.task.entry)]
    others = [text for text in texts.values() if defines(text, attempt.task.entry)]
    for text in (*written, *found[-1:], *others):
        return {f"{MODULE}.py": text}
    return {}


async def septet(attempt: Attempt) -> dict[str, str]:
    """The command line, as anybody would call it."""
    team = attempt.folder.parent / "small.yaml"
    team.write_text(TEAM)
    command = [sys.executable, "-m", "septet", "run", attempt.task.goal, "--yes", "-q", "-t", str(team)]
    command += ["-C", str(attempt.folder / "work"), "-m", f"url:{attempt.url}#{attempt.model}"]
    environment = {**os.environ, "SEPTET_HOME": str(attempt.folder / "home")}
    done = await anyio.run_process(command, env=environment, check=False)
    (attempt.folder / "errors.txt").write_bytes(done.stderr)
    (attempt.folder / "exit.txt").write_text(str(done.returncode))
    files = (attempt.folder / "work").glob("*.py")
    return {path.name: path.read_text(errors="replace") for path in files if not is_test(path.name)}


Do = Callable[[Attempt], Awaitable[dict[str, str]]]
WHO: dict[str, Do] = {
    "single": single,
    f"best-of-{DRAWS}": best_of_n,
    **{name: partial(peer, name) for name in PEERS},
    "septet": septet,
}


async def attempt_task(
    who: str, task: EvalTask, model: str, proxy: tuple[Proxy, str], sandbox: Sandbox
) -> Outcome:
    books, address = proxy
    key, started = f"{who}.{abs(hash(task.id))}", monotonic()
    with tempfile.TemporaryDirectory(prefix=f"outcome-{who}-") as place:
        folder = Path(place) / "task"
        folder.mkdir()
        attempt = Attempt(task=task, url=f"{address}/{key}/v1", model=model, folder=folder, sandbox=sandbox)
        files = await WHO[who](attempt)
        passed, detail = await judge(task, files, sandbox)
        exited = folder / "exit.txt"
        claimed = exited.exists() and exited.read_text() == "0"
        errors = folder / "errors.txt"
        if not files and errors.exists():
            detail = f"{detail}: {errors.read_text(errors='replace').strip()[-200:]}"
    spent = books.spent.get(key, Spent())
    return Outcome(
        who=who,
        task=task.id,
        passed=passed,
        detail=detail,
        claimed=claimed,
        answers=spent.answers,
        prompt=spent.prompt,
        said=spent.said,
        seconds=monotonic() - started,
    )


def read_outcomes(path: Path) -> list[Outcome]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Outcome) for line in lines if line.endswith(b"}")]


def table(outcomes: Sequence[Outcome], names: Sequence[str]) -> str:
    """Only tasks that everybody has tried."""
    tried = [{one.task for one in outcomes if one.who == who} for who in names]
    common = set[str].intersection(*tried) if tried else set[str]()
    lines = [
        "| who | right | 95 % | answers a task | tokens read / said a task | × tokens of one answer | s a task |"
    ]
    lines.append("|---|---|---|---|---|---|---|")
    first = 0.0
    for who in names:
        own = [one for one in outcomes if one.who == who and one.task in common]
        right, count = sum(one.passed for one in own), max(len(own), 1)
        low, high = interval(right, count)
        read, said = sum(one.prompt for one in own) / count, sum(one.said for one in own) / count
        first = first or read + said
        calls, seconds = sum(one.answers for one in own) / count, sum(one.seconds for one in own) / count
        ratio = (read + said) / first if first else 0.0
        reach = f"{100 * low:.0f} to {100 * high:.0f} %"
        cells = (who, f"{right} of {len(own)}", reach, f"{calls:.1f}", f"{read:.0f} / {said:.0f}")
        lines.append(f"| {' | '.join(cells)} | {ratio:.1f} | {seconds:.0f} |")
    claimed = [one for one in outcomes if one.claimed and one.task in common]
    wrong = sum(not one.passed for one in claimed)
    lines.append(f"\nSeptet said done of {len(claimed)}, of which {wrong} are wrong.")
    return "\n".join(lines)


async def run(given: argparse.Namespace) -> None:
    tasks = sample_tasks(read_suite(given.suite), given.tasks, given.seed)
    upstream, _, model = given.server.partition("#")
    names, out = given.who.split(","), Path(given.out)
    outcomes = read_outcomes(out)
    known = {(one.who, one.task) for one in outcomes}
    async with open_session() as session, counting_proxy(upstream) as proxy:
        sandbox = await session.sandbox(False)
        for task in tasks:
            for who in names:
                if (who, task.id) in known:
                    continue
                one = await attempt_task(who, task, model, proxy, sandbox)
                outcomes.append(one)
                async with await anyio.open_file(out, "ab") as file:
                    await file.write(msgspec.json.encode(one) + b"\n")
                verdict = "right" if one.passed else f"wrong ({one.detail[:100]})"
                print(f"{task.id} {who}: {verdict}, {one.seconds:.0f} s", file=sys.stderr, flush=True)
    print(table(outcomes, names))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite")
    parser.add_argument("server", metavar="URL#MODEL")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--who", default=",".join(WHO))
    parser.add_argument("--out", default="outcome.jsonl")
    given = parser.parse_args()
    for name in set(given.who.split(",")) & PEERS.keys():
        interpreter(name, PEERS[name])
    anyio.run(run, given)


if __name__ == "__main__":
    main()
