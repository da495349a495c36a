"""How a program is run: what plan or team say is needed, what the code only suggests is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from septet.domain.plans import Check, Plan, Requirement, Serves, ShowsWindow
from septet.domain.runs import Mode, Screen, Server
from septet.domain.state import PlanState, State
from septet.domain.teams import RunAs
from septet.team.run_modes import mode_of_run, mode_of_tests, suggest_mode

SERVER = "from http.server import HTTPServer\nHTTPServer(('', 8000), None).serve_forever()\n"


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        ("import tkinter as tk\n", Screen()),
        ("from tkinter import ttk\n", Screen()),
        ("def main():\n    import pygame\n", Screen()),
        (SERVER, Server()),
        ("from flask import Flask\napp = Flask('x')\napp.run()\n", Server()),
        ("import uvicorn\nuvicorn.run('x:app')\n", Server()),
        ("import threading\nthreading.Thread(target=server.serve_forever).start()\n", None),
        ("import subprocess\nsubprocess.run(['ls'])\n", None),
        ("print('tkinter')\n", None),
        ("from .tkinter import x\n", None),
        ("import tkinter oops\n", None),
    ],
)
def test_the_code_suggests_how_it_is_run(code: str, mode: Mode | None) -> None:
    assert suggest_mode({"main.py": code}) == mode


def test_tests_and_texts_suggest_nothing_for_the_program() -> None:
    assert suggest_mode({"test_main.py": SERVER, "notes.txt": SERVER, "main.py": "print(1)"}) is None


def test_tests_of_windows_get_a_screen_and_no_picture() -> None:
    assert mode_of_tests({"test_clock.py": "import tkinter"}) == Screen(picture="")
    assert mode_of_tests({"main.py": SERVER}) is None


@pytest.mark.parametrize(
    ("run", "check", "mode"),
    [
        ("auto", ShowsWindow(), Screen(needed=True)),
        ("auto", Serves(path="/x"), Server(path="/x", needed=True)),
        ("auto", None, Server()),
        ("script", ShowsWindow(), None),
        ("script", None, None),
        ("screen", None, Screen(needed=True)),
        ("server", None, Server(needed=True)),
    ],
)
def test_plan_and_team_decide(run: RunAs, check: Check | None, mode: Mode | None) -> None:
    items = (Requirement(id="P1", text="it", check=check),) if check else ()
    state = State(plan=PlanState(current=Plan(items=items, run="python main.py")))
    state = replace(state, team=replace(state.team, run=run))
    assert mode_of_run(state, {"main.py": SERVER}) == mode


@given(st.dictionaries(st.sampled_from(["a.py", "test_b.py", "c.txt"]), st.text()))
def test_no_text_is_too_strange(sources: dict[str, str]) -> None:
    assert suggest_mode(sources) in (None, Screen(), Server())
