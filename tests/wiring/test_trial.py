"""A program of the newest version runs at the repository's own path, with the project's environment, in a copy."""

import sys
import venv
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenarios.autocoder.playing import home_in
from scenarios.folders.chats import fill, repository
from team.states import PLAN, STARTED, chat, planned
from wiring.test_delivery import begin, write_version

from septet.domain.events import PlanProposed
from septet.wiring.session import open_session
from septet.wiring.trial import planned_command, try_newest

pytestmark = pytest.mark.anyio
LOOK = """\
import calc, os, sys
print(calc.__file__, calc.value, os.getcwd(), sys.prefix)
print(open('node_modules/dep.js').read(), open('rows.db').read(), os.path.exists('.env'))
for path in ('.venv/new', 'node_modules/new', '.git/new'):
    try:
        open(path, 'w')
        print('written', path)
    except OSError:
        pass
open('rows.db', 'w').write('emptied')
open('src/calc/__init__.py', 'w').write('gone')
"""


async def test_an_editable_install_means_the_copy_and_the_folder_is_not_touched(tmp_path: Path) -> None:
    project = repository(
        tmp_path / "project",
        {
            "src/calc/__init__.py": "value = 1\n",
            "look.py": LOOK,
            ".gitignore": ".venv/\nnode_modules/\n*.db\n",
        },
    )
    fill(project, {"node_modules/dep.js": "dep", "rows.db": "rows", ".env": "K=1"})
    venv.create(project / ".venv", with_pip=False, symlinks=True)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (project / ".venv" / "lib" / name / "site-packages" / "calc.pth").write_text(f"{project}/src\n")
    async with open_session(home_in(tmp_path)) as session:
        await begin(session, project)
        await write_version(session, {"src/calc/__init__.py": "value = 2\n"})
        result = await try_newest(session, "c", ("python", "look.py"), unsafe=False)
    assert result.stdout.splitlines() == [
        f"{project}/src/calc/__init__.py 2 {project} {project}/.venv",
        "dep rows False",
    ], result.stderr
    assert (project / "rows.db").read_text() == "rows"
    assert (project / "src/calc/__init__.py").read_text() == "value = 1\n"


def test_a_program_is_started_as_the_plan_says_and_else_as_main() -> None:
    assert planned_command(chat(planned())) == "python add.py 1 1"
    silent = PlanProposed(plan=replace(PLAN, run=""))
    assert planned_command(chat([STARTED, silent])) == planned_command(chat([STARTED])) == "python main.py"
