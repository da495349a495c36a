"""A project without an environment of its own: its setup command runs once, and later runs see what it made."""

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from loopback import Quiet, served
from msgspec.structs import replace
from sandboxes.indexes import index
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import ACCEPT, FIXED, REVISE, Played, code, git, plan, play, repository, script

from septet.domain.events import (
    EvidenceFound,
    PackagesDecided,
    PackagesInstalled,
    PackagesWanted,
    RunFinished,
)
from septet.domain.facts import FactsChange
from septet.domain.packages import Installation, Policy
from septet.domain.teams import TeamSpec
from septet.workspace.facts_file import Memory

CALC = "import emoji\n\n\ndef smile():\n    return emoji.smile[::-1]\n"
PROJECT = {
    "calc.py": CALC,
    "tests/test_calc.py": "from calc import smile\n\n\ndef test_smile():\n    assert smile() == ':)'\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["emoji"]\n',
    ".gitignore": ".venv\nnode_modules\n",
}
GOAL = "tests/test_calc.py::test_smile fails, fix it"
MENDED = {"calc.py": CALC.replace("[::-1]", "")}


def settings(packages: Policy = "auto", setup: str = "") -> Callable[[TeamSpec], TeamSpec]:
    return lambda spec: replace(spec, packages=packages, setup=setup)


def installations(played: Played) -> list[Installation]:
    return [one.installation for one in played.events if isinstance(one, PackagesInstalled)]


def runs(played: Played, purpose: str) -> list[RunFinished]:
    return [one for one in played.events if isinstance(one, RunFinished) and one.purpose == purpose]


def uv(folder: Path, *arguments: str) -> None:
    program = Path(sys.executable).with_name("uv")
    subprocess.run([program, *arguments, "--no-config"], cwd=folder, check=True, capture_output=True)


@pytest.mark.anyio
async def test_a_lock_file_is_installed_once_and_every_run_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index(tmp_path / "index", "emoji") as place:
        address = f"http://{place}/simple"
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        project = repository(tmp_path / "project", PROJECT)
        uv(project, "lock", "--default-index", address)
        git(project, "add", "-A")
        git(project, "commit", "-qm", "lock")
        model = script(tmp_path, code(MENDED), code(MENDED), ACCEPT)
        played = await play(tmp_path, model, "iterate", goal=GOAL, change=settings())
    assert [one.installed for one in installations(played)] == [("uv sync --frozen",)]
    assert runs(played, "baseline")[0].result.report.failed == ("tests/test_calc.py::test_smile",)
    assert played.ended.reason == "done", played.ended
    assert git(project, "status", "--porcelain") == " M calc.py\n"
    assert not (project / ".venv").exists()


PLAIN = {**PROJECT, "pyproject.toml": "[tool.pytest.ini_options]\n"}
POETRY_PROJECT = """\
[tool.poetry]
name = "calc"
version = "1"

[tool.poetry.dependencies]
python = "^3.11"
emoji = "*"
"""
POETRY_LOCK = """\
[[package]]
name = "emoji"
version = "9.9"
optional = false

[[package]]
name = "colour-of-another-system"
version = "1.0"
optional = false
markers = "platform_system == \\"Windows\\""
"""
WITHOUT_UV: dict[str, tuple[dict[str, str], str]] = {
    "requirements": (
        {**PLAIN, "requirements.txt": "# what it needs\nemoji>=9  # smiles\n"},
        "uv venv -q && uv pip install -p .venv -r requirements.txt",
    ),
    "poetry": ({**PLAIN, "pyproject.toml": POETRY_PROJECT, "poetry.lock": POETRY_LOCK}, "emoji==9.9"),
    "pyproject": (PROJECT, "emoji"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", WITHOUT_UV)
async def test_what_other_files_declare_is_installed_before_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files, installed = WITHOUT_UV[name]
    project = repository(tmp_path / "project", files)
    model = script(tmp_path, code(MENDED), code(MENDED), ACCEPT)
    with index(tmp_path / "index", "emoji") as place:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://{place}/simple")
        played = await play(tmp_path, model, "iterate", goal=GOAL, change=settings())
    assert [(one.installed, one.failed) for one in installations(played)] == [((installed,), ())]
    assert runs(played, "baseline")[0].result.report.failed == ("tests/test_calc.py::test_smile",)
    assert played.ended.reason == "done", played.ended
    assert git(project, "status", "--porcelain", "--ignored", "-uall") == " M calc.py\n"


@pytest.mark.anyio
async def test_where_packages_are_off_nothing_is_set_up(tmp_path: Path) -> None:
    repository(tmp_path / "project", WITHOUT_UV["requirements"][0])
    model = script(tmp_path, code(MENDED), code(MENDED), ACCEPT)
    played = await play(
        tmp_path,
        model,
        "iterate",
        lambda event: isinstance(event, RunFinished),
        goal=GOAL,
        change=settings("off"),
    )
    assert not installations(played)
    assert "emoji" in runs(played, "baseline")[0].result.stdout


@pytest.mark.anyio
async def test_a_fact_names_the_command_and_a_failure_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    repository(tmp_path / "project", PROJECT)
    model = script(tmp_path, code(MENDED), code(MENDED), ACCEPT)
    remembered = FactsChange(add=("setup: echo no such server >&2; exit 3",))
    Memory(home_in(tmp_path).facts, tmp_path / "project").change(remembered, "the person, 2026-11-16")
    played = await play(tmp_path, model, "iterate", goal=GOAL, change=settings())
    (failed, *_) = installations(played)
    assert failed.failed == ("echo no such server >&2; exit 3",)
    assert "no such server" in failed.why
    assert "setup:" in failed.why


@pytest.mark.anyio
async def test_what_setup_makes_is_made_anew_with_the_scratch(tmp_path: Path) -> None:
    """The team's own command may be any; its environment is kept as long as the copies are."""
    repository(tmp_path / "project", {**PROJECT, "calc.py": "def smile():\n    return '(:'\n"})
    wrong, right = ({"calc.py": f"def smile():\n    return '{mouth}'\n"} for mouth in (":(", ":)"))
    model = script(tmp_path, code(wrong), code(wrong), REVISE, code(right, FIXED), ACCEPT)
    setup = "mkdir node_modules && echo made > node_modules/made"
    first = await play(
        tmp_path,
        model,
        "iterate",
        lambda event: isinstance(event, EvidenceFound),
        goal=GOAL,
        change=settings(setup=setup),
    )
    assert len(installations(first)) == 1
    shutil.rmtree(home_in(tmp_path).scratches)
    played = await play(tmp_path, model, "iterate", goal=GOAL)
    assert played.ended.reason == "done"
    assert [one.installed for one in installations(played)] == [(setup,), (setup,)]


@pytest.mark.anyio
async def test_the_person_is_asked_for_the_setup_and_after_a_failure_for_what_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "project", PROJECT)
    model = script(tmp_path, code(MENDED), code(MENDED), ACCEPT)
    setup = "make environment"
    with index(tmp_path / "index", "emoji") as place:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://{place}/simple")
        played = await play(tmp_path, model, "iterate", goal=GOAL, change=settings("ask", setup))
    wanted = [one.missing for one in played.events if isinstance(one, PackagesWanted)]
    decided = [one for one in played.events if isinstance(one, PackagesDecided)]
    assert (wanted[0].setup, decided[0].names, decided[0].by) == (setup, (setup,), "flag")
    assert [(one.installed, one.failed) for one in installations(played)] == [
        ((), (setup,)),
        (("emoji",), ()),
    ]
    assert played.ended.reason == "done"


def node_package(folder: Path, place: str) -> dict[str, object]:
    """A package that the lock file names by its address."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {
            "package.json": json.dumps({"name": "left", "version": "1.0.0", "main": "left.js"}),
            "left.js": "module.exports = (text) => `<${text}`;\n",
        }.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    (folder / "left-1.0.0.tgz").write_bytes(packed.getvalue())
    digest = base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    return {
        "version": "1.0.0",
        "resolved": f"http://{place}/left-1.0.0.tgz",
        "integrity": f"sha512-{digest}",
    }


@pytest.mark.anyio
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_npm_installs_what_the_lock_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "registry").mkdir()
    with served(partial(Quiet, directory=str(tmp_path / "registry"))) as place:
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://{place}/")
        left = node_package(tmp_path / "registry", place)
        head = {"name": "pad", "version": "1.0.0", "dependencies": {"left": "1.0.0"}}
        lock = {
            "name": "pad",
            "version": "1.0.0",
            "lockfileVersion": 3,
            "packages": {"": head, "node_modules/left": left},
        }
        test = "import test from 'node:test';\nimport assert from 'node:assert';\nimport pad from '../pad.mjs';\n"
        test += "test('pads', () => assert.equal(pad('x'), '<x'));\n"
        project = repository(
            tmp_path / "project",
            {
                "package.json": json.dumps({**head, "scripts": {"test": "node --test"}}),
                "package-lock.json": json.dumps(lock),
                "pad.mjs": "import left from 'left';\nexport default (text) => left('y');\n",
                "test/pad.test.mjs": test,
                ".gitignore": "node_modules\n",
            },
        )
        mended = {"pad.mjs": "import left from 'left';\nexport default (text) => left(text);\n"}
        planned = plan("", "mends test/pad.test.mjs::pads")
        model = script(tmp_path, planned, code(mended), code(mended), ACCEPT)
        played = await play(tmp_path, model, "iterate", change=settings())
    assert [one.installed for one in installations(played)] == [("npm ci --ignore-scripts",)]
    assert runs(played, "baseline")[0].result.report.failed == ("test/pad.test.mjs::pads",)
    assert played.ended.reason == "done", played.ended
    assert not (project / "node_modules").exists()
