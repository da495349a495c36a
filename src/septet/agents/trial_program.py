"""Runs candidate programs inside the sandbox; uses only the standard library and imports nothing of Septet.

Reads a task as JSON from standard input and prints the outcomes of each program. Each program runs in its own
process, a few at a time. CPU time per step and time per program are limited, so that a program that never ends costs
only seconds.
"""

import ast
import contextlib
import hashlib
import json
import math
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Generator

STEP_SECONDS = 0.5
PROGRAM_SECONDS = 8.0
MOST_EXPIRED = 3
MEMORY = 512 << 20
"""Small enough for four processes at once: one that needs more must not affect the others."""
LONGEST_KEY = 160
DEEPEST = 20


class OutOfTime(BaseException):
    """A step has used up its CPU time."""


def key(value: object, depth: int = 0) -> str:
    """A value in normal form: equal values have the same, whatever their types print. `-9.0` is `-9`."""
    kind = type(value).__name__
    if depth > DEEPEST:
        return "…"
    if isinstance(value, bool | int | float):
        return number_key(value)
    if isinstance(value, complex):
        return f"{number_key(value.real)}+{number_key(value.imag)}j"
    if isinstance(value, dict):
        pairs: dict[object, object] = {**value}
        inner = [f"{key(one, depth + 1)}:{key(other, depth + 1)}" for one, other in pairs.items()]
        return "{" + ",".join(sorted(inner)) + ":}"
    if isinstance(value, list | tuple | set | frozenset):
        items: list[object] = [*value]
        return items_key([key(one, depth + 1) for one in items], kind)
    if kind in ("generator", "map", "filter", "zip") or kind.endswith("iterator"):
        return f"<{kind}>"
    text = repr(value)
    return kind if " at 0x" in text else text


def items_key(inner: list[str], kind: str) -> str:
    if kind in ("set", "frozenset"):
        return "{" + ",".join(sorted(inner)) + "}"
    return f"[{','.join(inner)}]" if kind == "list" else f"({','.join(inner)})"


def number_key(value: float) -> str:
    if isinstance(value, int):
        return repr(int(value)) if abs(value) < 10**40 else digest(hex(value))
    if not math.isfinite(value):
        return str(value)
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"


def short(text: str) -> str:
    return text if len(text) <= LONGEST_KEY else text[:80] + "…" + digest(text)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]


def values_close(one: object, other: object) -> bool:
    """Whether values are equal, with a tolerance for floats."""
    try:
        if bool(one == other):
            return True
    except Exception:
        return False
    alike = type(one).__name__ == type(other).__name__
    if isinstance(one, int | float | complex) and isinstance(other, int | float | complex):
        return abs(one - other) <= 1e-9 + 1e-6 * abs(other)
    if alike and isinstance(one, list | tuple) and isinstance(other, list | tuple):
        mine: list[object] = [*one]
        theirs: list[object] = [*other]
        return len(mine) == len(theirs) and all(map(values_close, mine, theirs))
    if isinstance(one, dict) and isinstance(other, dict):
        left: dict[object, object] = {**one}
        right: dict[object, object] = {**other}
        return left.keys() == right.keys() and all(values_close(left[name], right[name]) for name in left)
    return False


@contextlib.contextmanager
def step_limit() -> Generator[None, None, None]:
    """Limit the CPU time of a step. The signal is repeated, because a program may catch it."""
    signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def out_of_time(_signal: int, _frame: object) -> None:
    raise OutOfTime


class LoadedProgram:
    """A program that is loaded once, to be called many times."""

    def __init__(self, source: str) -> None:
        self._expired = 0
        self._space: dict[str, object] = {"__name__": "candidate"}
        self._step(lambda: exec(compile(source, "candidate", "exec"), self._space))  # noqa: S102  # this is what the sandbox is for

    def _step(self, action: Callable[[], object]) -> tuple[str, object]:
        if self._expired >= MOST_EXPIRED:
            return "t:", None
        try:
            with step_limit():
                value = action()
                return "v:" + short(key(value)), value
        except OutOfTime:
            self._expired += 1
            return "t:", None
        except BaseException as error:
            return f"e:{type(error).__name__}", error

    def call(self, call: str) -> str:
        """The outcome of a call; if it returns None, its arguments after the call."""
        return self._step(lambda: self._called(call))[0]

    def _called(self, call: str) -> object:
        node = ast.parse(call, mode="eval").body
        if not isinstance(node, ast.Call) or node.keywords:
            return self._value(call)
        arguments = [self._value(ast.unparse(one)) for one in node.args]
        before = [key(one) for one in arguments]
        function = self._value(ast.unparse(node.func))
        if not callable(function):
            raise TypeError
        result = function(*arguments)
        after = [key(one) for one in arguments]
        return ("changed", *arguments) if result is None and before != after else result

    def _value(self, expression: str) -> object:
        return eval(expression, {"math": math, "sys": sys, **self._space})  # noqa: S307  # as above

    def check(self, example: dict[str, str]) -> tuple[bool, str]:
        """Whether an example holds, and the outcome of its call."""
        call, raises, holds = example["call"], example.get("raises", ""), example.get("holds", "")
        if raises:
            outcome, error = self._step(lambda: self._value(call))
            names = [one.__name__ for one in type(error).__mro__] if isinstance(error, BaseException) else []
            return outcome.startswith("e:") and raises in names, outcome
        if holds:
            outcome, _ = self._step(lambda: bool(self._value(holds)))
            return outcome == "v:1", self.call(call)
        outcome, value = self._step(lambda: self._value(example["left"]))
        if not outcome.startswith("v:"):
            return False, (f"{outcome} {value}" if isinstance(value, BaseException) else outcome)[:200]
        other, wanted = self._step(lambda: self._value(example["right"]))
        return other.startswith("v:") and values_close(value, wanted), "v:" + repr(value)[:200]


class Running:
    """A program that runs in a child process."""

    def __init__(self, source: str, calls: list[str], examples: list[dict[str, str]]) -> None:
        self.deadline = time.monotonic() + PROGRAM_SECONDS
        self.said = b""
        self.reader, writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.reader)
            try:
                try_in_child(source, calls, examples, writer)
            finally:
                os._exit(0)
        os.close(writer)

    def end(self) -> list[list[object]]:
        """Wait for the process, kill it if needed, and return what it wrote."""
        os.close(self.reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        return [json.loads(line) for line in self.said.split(b"\n")[:-1]]


def try_in_child(source: str, calls: list[str], examples: list[dict[str, str]], writer: int) -> None:
    limits = ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_CORE, 0))
    for limit, most in limits:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    signal.signal(signal.SIGPROF, out_of_time)
    trial = LoadedProgram(source)

    def tell(item: list[object]) -> None:
        data = (json.dumps(item) + "\n").encode()
        while data:
            data = data[os.write(writer, data) :]

    for example in examples:
        tell(["check", *trial.check(example)])
    for call in calls:
        tell(["call", trial.call(call)])


def try_all(
    programs: list[str], calls: list[str], examples: list[dict[str, str]], width: int
) -> list[list[list[object]]]:
    """Run all programs, `width` at a time."""
    told: dict[int, list[list[object]]] = {}
    waiting = list(enumerate(programs))
    running: dict[int, Running] = {}
    while waiting or running:
        while waiting and len(running) < width:
            place, source = waiting.pop(0)
            running[place] = Running(source, calls, examples)
        left = min(one.deadline for one in running.values()) - time.monotonic()
        ready, _, _ = select.select([one.reader for one in running.values()], [], [], max(0.0, left))
        for place, one in list(running.items()):
            data = os.read(one.reader, 1 << 16) if one.reader in ready else b""
            one.said += data
            if (one.reader in ready and not data) or time.monotonic() > one.deadline:
                told[place] = running.pop(place).end()
    return [told[place] for place in sorted(told)]


def main() -> None:
    sys.setrecursionlimit(3000)
    task = json.load(sys.stdin)
    width = max(1, min(4, os.cpu_count() or 1))
    json.dump(try_all(task["programs"], task.get("calls", []), task.get("examples", []), width), sys.stdout)


if __name__ == "__main__":
    main()
