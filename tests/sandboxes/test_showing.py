"""What a program shows becomes a picture, and no program has to know of it."""

from pathlib import Path

import pytest

from septet.domain.pictures import recognise
from septet.domain.runs import Cell, Job, RunResult
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.showing import with_pictures
from septet.sandboxes.workbench import Workbench

pytestmark = pytest.mark.anyio

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


async def run(workspace: Path, *command: str) -> RunResult:
    bench = Workbench(Bubblewrap.found(), (with_pictures,))
    return await bench.run(Job(command=command, workspace=str(workspace)))


def made(result: RunResult) -> list[str]:
    return [change.path for change in result.changes]


async def test_plots_that_are_shown_are_left_as_pictures_and_closed(tmp_path: Path) -> None:
    result = await run(tmp_path, "python", "-c", PLOT)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "0\n", "")
    assert made(result) == ["figure-1.png", "figure-2.png", "figure-3.png"]
    assert recognise((tmp_path / "figure-2.png").read_bytes()).kind == "640×480 PNG"


async def test_a_program_that_chooses_its_backend_has_it(tmp_path: Path) -> None:
    chosen = "import matplotlib; matplotlib.use('svg'); import matplotlib.pyplot as p; print(p.get_backend())"
    assert (await run(tmp_path, "python", "-c", chosen)).stdout == "svg\n"
    isolated = "import matplotlib.pyplot as p; p.plot([1]); p.savefig('x.png')"
    assert made(await run(tmp_path, "python", "-I", "-c", isolated)) == ["x.png"]


async def test_an_image_that_is_shown_is_left_as_a_picture(tmp_path: Path) -> None:
    code = "from PIL import Image\nImage.new('RGB', (4, 4), 'red').show()\nImage.new('L', (2, 2)).show()"
    result = await run(tmp_path, "python", "-c", code)
    assert (result.exit_code, result.stderr, made(result)) == (0, "", ["image-1.png", "image-2.png"])


async def test_cells_of_a_kernel_leave_theirs(tmp_path: Path) -> None:
    bench = Workbench(Bubblewrap.found(), (with_pictures,))
    first = "import matplotlib.pyplot as plt; plt.plot([1, 2])"
    job = Job(command=(), workspace=str(tmp_path), mode=Cell(code=first))
    assert (await bench.run(job)).succeeded
    shown = Job(command=(), workspace=str(tmp_path), mode=Cell(code="plt.show()", earlier=(first,)))
    assert made(await bench.run(shown)) == ["figure-1.png"]
    await bench.rest(str(tmp_path))
