"""Runs cells of code one after the other inside a sandbox, in one namespace.

Run as `python -c SOURCE DESCRIPTOR`: each line on the descriptor is a nonce and a cell, as JSON; the answer to each is
one line: the nonce and whether it succeeded. The very first line says that the kernel is ready. What a cell prints
goes to stdout and stderr, before its answer is sent. The functions that run cells are bound to private names here,
because a cell may replace those in the modules.
"""

import ast
import json
import linecache
import os
import signal
import socket
import sys
import traceback


class Interrupts:
    """Handles SIGINT: one interrupt ends one cell; a second one, or one between cells, is ignored."""

    def __init__(self) -> None:
        self.is_enabled = False

    def __call__(self, number: int, frame: object) -> None:
        if self.is_enabled:
            self.is_enabled = False
            raise KeyboardInterrupt


_interrupts = Interrupts()
_compile, _exec, _eval, _loads, _print_exception = compile, exec, eval, json.loads, traceback.print_exception


def _run(code: str, name: str, namespace: dict[str, object]) -> None:
    """Run a cell; like a notebook, show the value of a last expression."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = _compile(code, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    _exec(_compile(tree, name, "exec", dont_inherit=True), namespace)
    if isinstance(last, ast.Expr):
        sys.displayhook(
            _eval(_compile(ast.Expression(last.value), name, "eval", dont_inherit=True), namespace)
        )


def _outcome(code: str, name: str, namespace: dict[str, object]) -> str:
    try:
        signal.signal(signal.SIGINT, _interrupts)
        _interrupts.is_enabled = True
        _run(code, name, namespace)
    except KeyboardInterrupt:
        sys.stderr.write("KeyboardInterrupt\n")
        return "interrupted"
    except SystemExit as error:
        if error.code not in (None, 0):
            sys.stderr.write(f"SystemExit: {error.code}\n")
            return "failed"
    except BaseException as error:
        _show(error, name)
        return "failed"
    finally:
        _interrupts.is_enabled = False
    return "succeeded"


def _show(error: BaseException, name: str) -> None:
    """Print the traceback from the cell's own code on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    _print_exception(type(error), error, trace)


def main() -> None:
    signal.signal(signal.SIGINT, _interrupts)
    sys.path[0] = ""
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        os.set_inheritable(channel.fileno(), False)
        sys.argv = [""]
        channel.sendall(b"ready\n")
        for number, line in enumerate(channel.makefile("r", encoding="utf-8"), start=1):
            nonce, code = _loads(line)
            answer = _outcome(code, f"<cell {number}>", module.__dict__)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            channel.sendall(f"\n{nonce} {answer}\n".encode())


if __name__ == "__main__":
    main()
