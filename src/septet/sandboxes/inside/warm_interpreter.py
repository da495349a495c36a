"""Waits inside a sandbox as a started interpreter, then runs the Python program it receives.

Run as `python -c SOURCE DESCRIPTOR MODULE…`: imports the modules, reads the program's arguments from the
descriptor, separated by NULs, and runs it as `python ARGUMENTS…` would. Objects created before that are frozen
(gc.freeze), otherwise garbage collection at exit would take most of the run time.
"""

import builtins
import gc
import os
import sys

_NO_PROGRAM = 125


def _read_arguments(descriptor: int) -> list[str]:
    with os.fdopen(descriptor, "rb") as control:
        data = control.read()
    if not data:
        sys.exit(_NO_PROGRAM)
    return os.fsdecode(data).split("\0")


def _main_module(**names: object) -> dict[str, object]:
    """A fresh `__main__`, as a program finds it."""
    module = type(sys)("__main__")
    module.__dict__.update({"__builtins__": builtins, "__annotations__": {}, **names})
    sys.modules["__main__"] = module
    return module.__dict__


def _run_file(path: str) -> None:
    from importlib.machinery import SourceFileLoader

    path = os.path.abspath(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        why = f"[Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"{sys.orig_argv[0]}: can't open file {path!r}: {why}\n")
        sys.exit(2)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    names = _main_module(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    exec(compile(source, path, "exec", dont_inherit=True), names)


def _run_text(text: str) -> None:
    sys.path[0] = ""
    exec(compile(text, "<string>", "exec", dont_inherit=True), _main_module())


def _run_module(name: str) -> None:
    import runpy

    sys.path[0] = os.getcwd()
    _main_module()
    runpy._run_module_as_main(name)  # pyright: ignore


def main() -> None:
    descriptor, *modules = sys.argv[1:]
    for name in modules:
        try:
            __import__(name)
        except ImportError:
            continue
    gc.collect()
    gc.freeze()
    first, *rest = _read_arguments(int(descriptor))
    run, target = {"-c": (_run_text, rest[:1]), "-m": (_run_module, rest[:1])}.get(
        first, (_run_file, [first])
    )
    sys.argv = [first, *rest[1:]] if first in ("-c", "-m") else [first, *rest]
    try:
        run(target[0])
    except Exception as error:
        trace = error.__traceback__
        for _ in range(2):
            trace = trace.tb_next if trace else None
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        sys.exit(1)


if __name__ == "__main__":
    main()
