"""What a program shows becomes a picture, and no program has to know of it."""

import sysconfig
from pathlib import Path

import pytest

from septet.common.pictures import recognise
from septet.domain.runs import Cell, Job, RunResult
from septet.sandboxes.environment import base_interpreter, make_environment
from septet.sandboxes.interpreters import Interpreters, site_packages
from septet.sandboxes.job_runner import JobRunner
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio

LENT = sysconfig.get_path("purelib")
"""Where matplotlib is installed for the tests."""

PLOT = """
import matplotlib.pyplot as plt
plt.plot([1, 2], [3, 4])
plt.figure()
plt.bar(["a", "b"], [1, 2])
plt.show()
plt.plot([1], [1], "o")
plt.show()
print(len(plt.get_fignums()))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Whose own environment has matplotlib and Pillow."""
    folder = tmp_path / "project"
    make_environment(folder / ".venv", base_interpreter())
    Path(site_packages(folder / ".venv")[0], "lent.pth").write_text(LENT)
    return folder


def job_runner(workspace: Path) -> JobRunner:
    return JobRunner(Bubblewrap.detect(), (Interpreters(workspace.parent / "cache").prepare,))


async def run(workspace: Path, *command: str) -> RunResult:
    return await job_runner(workspace).run(Job(command=command, workspace=str(workspace), readable=(LENT,)))


def made(result: RunResult) -> list[str]:
    return [change.path for change in result.changes]


async def test_plots_that_are_shown_are_left_as_pictures_and_closed(project: Path) -> None:
    result = await run(project, "python", "-c", PLOT)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "0\n", "")
    assert made(result) == ["figure-1.png", "figure-2.png", "figure-3.png"]
    assert recognise((project / "figure-2.png").read_bytes()).kind == "640×480 PNG"


async def test_a_program_that_chooses_its_backend_has_it(project: Path) -> None:
    chosen = "import matplotlib; matplotlib.use('svg'); import matplotlib.pyplot as p; print(p.get_backend())"
    assert (await run(project, "python", "-c", chosen)).stdout == "svg\n"
    isolated = "import matplotlib.pyplot as p; p.plot([1]); p.savefig('x.png')"
    assert made(await run(project, "python", "-I", "-c", isolated)) == ["x.png"]


async def test_an_image_that_is_shown_is_left_as_a_picture(project: Path) -> None:
    code = "from PIL import Image\nImage.new('RGB', (4, 4), 'red').show()\nImage.new('L', (2, 2)).show()"
    result = await run(project, "python", "-c", code)
    assert (result.exit_code, result.stderr, made(result)) == (0, "", ["image-1.png", "image-2.png"])


async def test_cells_of_a_kernel_leave_theirs(project: Path) -> None:
    kept = job_runner(project)
    first = "import matplotlib.pyplot as plt; plt.plot([1, 2])"
    job = Job(command=(), workspace=str(project), readable=(LENT,), mode=Cell(code=first))
    assert (await kept.run(job)).succeeded
    shown = Job(
        command=(), workspace=str(project), readable=(LENT,), mode=Cell(code="plt.show()", earlier=(first,))
    )
    assert made(await kept.run(shown)) == ["figure-1.png"]
    await kept.release(str(project))
