"""Decides how a program is run: as it is, on a screen or as a server, by the plan, the team or the code. Pure."""

import ast
from collections.abc import Iterator, Mapping

from septet.domain.files import is_test
from septet.domain.plans import Serves, ShowsWindow
from septet.domain.runs import Mode, Screen, Server
from septet.domain.state import State

GUI_LIBRARIES = {
    *("tkinter", "turtle", "pygame", "pyglet", "arcade", "kivy", "wx", "gi", "customtkinter", "ursina"),
    *("PyQt5", "PyQt6", "PySide2", "PySide6", "dearpygui", "pyray"),
}
WEB_FRAMEWORKS = {"flask", "uvicorn", "bottle", "quart", "sanic", "aiohttp", "cherrypy", "hypercorn"}
SERVER_CALLS = {"serve_forever", "run_app"}
"""Calls that do not return, because they serve requests."""


def mode_of_run(state: State, sources: Mapping[str, str]) -> Mode | None:
    """Choose the mode of the program's run. It is `needed` if plan or team name it, not if the code suggests it."""
    named = state.team.run
    checks = [item.check for item in state.plan.items]
    if named == "screen" or (named == "auto" and any(isinstance(one, ShowsWindow) for one in checks)):
        return Screen(needed=True)
    served = [one.path for one in checks if isinstance(one, Serves)]
    if named == "server" or (named == "auto" and served):
        return Server(path=served[0] if served else "/", needed=True)
    return suggest_mode(sources) if named == "auto" else None


def suggest_mode(sources: Mapping[str, str]) -> Mode | None:
    """Guess the mode from the program's own files (path → text)."""
    trees = [
        tree for path, text in sources.items() if not is_test(path) and (tree := parse_source(path, text))
    ]
    modules = {name for tree in trees for name in imported_modules(tree)}
    if modules & GUI_LIBRARIES:
        return Screen()
    calls = {name for tree in trees for name in called_methods(tree)}
    return Server() if calls & SERVER_CALLS or ("run" in calls and modules & WEB_FRAMEWORKS) else None


def mode_of_tests(sources: Mapping[str, str]) -> Mode | None:
    """Choose the mode of a test run: tests of windows need a screen, and run to their end."""
    trees = [tree for path, text in sources.items() if (tree := parse_source(path, text))]
    windows = GUI_LIBRARIES & {name for tree in trees for name in imported_modules(tree)}
    return Screen(picture="") if windows else None


def parse_source(path: str, text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if path.endswith(".py") else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def called_methods(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr
