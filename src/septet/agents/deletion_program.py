"""Calls a program's functions with one part of it taken away after the other; runs inside the sandbox.

It uses only the standard library and imports nothing of Septet. Reads the calls and the switches (team/deletions.py)
as JSON from standard input, and prints which results change. Each deletion is tried in a process of its own: what the
program remembers of one is not there in the next.
"""

import ast
import builtins
import contextlib
import importlib
import json
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypedDict, cast

STEP_SECONDS, WAIT_SECONDS = 0.2, 2.0
"""Of the processor, and of waiting: what is found must not depend on how busy the machine is."""
TRY_SECONDS = 20.0
OTHERS_SECONDS = 1.0
"""For all other calls of one try: what is left then is not asked."""
MEMORY = 1 << 30
LONGEST, DEEPEST = 300, 8
MOST_CHANGED = 12
"""Changed results of other calls after which a place is needed for more than the tests."""

Call = tuple[str, str, list[str]]


class Task(TypedDict):
    """What to do, as the deletion task of agents/deletions.py says it."""

    path: list[str]
    modules: list[str]
    tested: list[Call]
    others: list[Call]
    switches: list[int]
    seconds: float
    helpers: str


class Known(TypedDict):
    """What the whole program gives, and the switches that the tested calls reach."""

    tested: list[str]
    others: list[str]
    reached: list[int]
    distinct: list[int]
    """The tested calls without those that come again and give the same."""


class Difference(TypedDict):
    """What is different from what the whole program gives, by the number of the call."""

    tested: dict[int, str]
    others: dict[int, str]


class OutOfTime(BaseException):
    """A call has used up its time."""


def out_of_time(_signal: int, _frame: object) -> None:
    raise OutOfTime


def spelled(value: object, depth: int = 0) -> str:
    """A value as a literal, or its type and fields. Equal values are spelled alike, by no method of the program."""
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if depth > DEEPEST:
        return "…"
    if isinstance(value, dict):
        pairs = dict(cast(dict[object, object], value))
        told = [f"{spelled(one, depth + 1)}: {spelled(other, depth + 1)}" for one, other in pairs.items()]
        return "{" + ", ".join(sorted(told)) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return spelled_items(cast(Collection[object], value), depth)
    if type(value).__name__ in ("generator", "map", "filter", "zip", "range"):
        items = cast(Iterator[object], value)
        return spelled_items([one for one, _ in zip(items, range(1000), strict=False)], depth)
    return spelled_object(value, depth)


def spelled_object(value: object, depth: int) -> str:
    fields: dict[str, object] = getattr(value, "__dict__", {})
    own = [f"{name}={spelled(one, depth + 1)}" for name, one in sorted(fields.items())]
    if isinstance(value, int):
        own.insert(0, int.__repr__(value))
    if isinstance(value, float):
        own.insert(0, float.__repr__(value))
    if isinstance(value, str):
        own.insert(0, str.__repr__(value))
    return f"<{' '.join([type(value).__name__, *own])}>"


def spelled_items(items: Collection[object], depth: int) -> str:
    told = [spelled(one, depth + 1) for one in list(items)]
    if isinstance(items, list):
        return f"[{', '.join(told)}]"
    if isinstance(items, tuple):
        return f"({', '.join(told)}{',' if len(told) == 1 else ''})"
    return "{" + ", ".join(sorted(told)) + "}"


def outcome(function: Callable[[], object]) -> str:
    signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS, 0.05)
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS, 0.05)
    try:
        value = function()
        return f"v:{type(value).__name__}:{spelled(value)[:LONGEST]}"
    except OutOfTime:
        return "t:"
    except BaseException as error:
        return f"e:{type(error).__name__}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def make(call: Call) -> str:
    module, name, arguments = call

    def act() -> object:
        random.seed(1)
        given = [ast.literal_eval(one) for one in arguments]
        found: object = importlib.import_module(module)
        owner, _, method = name.rpartition(".")
        if owner:
            given[0] = found = with_attributes(getattr(found, owner), given[0])
        before = [spelled(one) for one in given]
        result = getattr(found, method)(*given[bool(owner) :])
        after = [spelled(one) for one in given]
        return ("changed", *given) if result is None and before != after else result

    return outcome(act)


def with_attributes(kind: type[object], attributes: dict[str, object]) -> object:
    """An object of that class as a test had it."""
    made: object = object.__new__(kind)
    vars(made).update(attributes)
    return made


def others_seconds(task: Task) -> float:
    """A slow program is asked less besides what its tests ask."""
    return min(OTHERS_SECONDS, task["seconds"] / 6)


def first_answers(task: Task) -> Known:
    """What the program gives to the tested calls, then to the others."""
    tested = [make(call) for call in task["tested"]]
    reached: list[int] = sorted(vars(builtins)["_septet_off"].reached)
    end = time.process_time() + others_seconds(task)
    others = [make(call) if time.process_time() < end else "t:" for call in task["others"]]
    return {
        "tested": tested,
        "others": others,
        "reached": reached,
        "distinct": distinct(task["tested"], tested),
    }


def distinct(calls: list[Call], results: list[str]) -> list[int]:
    """The numbers of the calls. One that comes again is asked again only if it gives something else."""
    seen: set[tuple[str, str, tuple[str, ...], str]] = set()
    found: list[int] = []
    for number, ((module, name, given), result) in enumerate(zip(calls, results, strict=True)):
        key = (module, name, tuple(given), result)
        if key not in seen:
            seen.add(key)
            found.append(number)
    return found


def differences(task: Task, known: Known, *, always: bool) -> Difference:
    """What changes of the tested calls and, if one of them does (or `always`), of the others."""
    tested = {place: make(task["tested"][place]) for place in known["distinct"]}
    first = {place: one for place, one in tested.items() if one != known["tested"][place]}
    changed: dict[int, str] = {}
    end = time.process_time() + 2 * others_seconds(task)
    for place, call in enumerate(task["others"] if first or always else ()):
        before = known["others"][place]
        if before == "t:" or time.process_time() > end or len(changed) >= MOST_CHANGED:
            continue
        if (found := make(call)) != before:
            changed[place] = found
    return {"tested": first, "others": changed}


def in_child(task: Task, off: list[int], act: Callable[[], object]) -> bytes:
    """What a process of its own answers, with these places taken away; nothing if it does not answer in time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            set_limits()
            switch(task["helpers"], off)
            for module in task["modules"]:
                with contextlib.suppress(BaseException):
                    importlib.import_module(module)
            write(writer, json.dumps(act()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    said, deadline = b"", time.monotonic() + TRY_SECONDS
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(reader, 1 << 16)
        if not piece:
            break
        said += piece
    os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return said


def used_seconds() -> float:
    """The processor's time that all tries have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def set_limits() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    limits = ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 1 << 20), (resource.RLIMIT_CORE, 0))
    for limit, most in limits:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    signal.signal(signal.SIGALRM, out_of_time)
    signal.signal(signal.SIGPROF, out_of_time)


def write(writer: int, data: bytes) -> None:
    while data:
        data = data[os.write(writer, data) :]


def switch(helpers: str, off: list[int]) -> None:
    exec(compile(helpers, "switches", "exec"), {"__name__": "switches"})  # noqa: S102  # our own, before the program's
    vars(builtins)["_septet_off"].update(off)


def try_each(task: Task, known: Known, end: float) -> tuple[dict[int, Difference], int]:
    """Take one place after the other away. The second result is the number of those for which no time was left."""
    found: dict[int, Difference] = {}
    spare: list[int] = []
    reached = [number for number in task["switches"] if number in known["reached"]]
    for place, number in enumerate(reached):
        if used_seconds() > end:
            return found, len(reached) - place
        said = in_child(task, [number], lambda: differences(task, known, always=False))
        told: Difference = json.loads(said) if said else {"tested": {}, "others": {}}
        if told["tested"]:
            found[number] = told
        elif said:
            spare.append(number)
    return found | try_together(task, known, spare, end), 0


def try_together(task: Task, known: Known, spare: list[int], end: float) -> dict[int, Difference]:
    """What changes nothing alone may change something together: one case may be there twice."""
    off: list[int] = []
    for number in spare:
        if used_seconds() > end:
            break
        said = in_child(task, [*off, number], lambda: differences(task, known, always=True))
        told: Difference = json.loads(said) if said else {"tested": {}, "others": {0: ""}}
        if not told["others"]:
            off.append(number)
            if told["tested"]:
                return {number: told}
    return {}


def main() -> None:
    task: Task = json.load(sys.stdin)
    sys.path[:0] = task["path"]
    sys.setrecursionlimit(2000)
    end = used_seconds() + task["seconds"]
    known, again = (in_child(task, [], lambda: first_answers(task)) for _ in range(2))
    if not known or not again:
        json.dump({}, sys.stdout)
        return
    first: Known = json.loads(known)
    other: Known = json.loads(again)
    pairs = ((first["tested"], other["tested"]), (first["others"], other["others"]))
    unsteady = [[place for place, one in enumerate(part) if one != more[place]] for part, more in pairs]
    told = {"tested": first["tested"], "others": first["others"], "unsteady": unsteady}
    found, untried = try_each(task, first, end)
    json.dump({**told, "differences": found, "untried": untried}, sys.stdout)


if __name__ == "__main__":
    main()
