"""Plots and pictures that a program shows leave files: modules that every Python inside a sandbox finds."""

import os
import shutil
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from septet.domain.runs import Job
from septet.tools.passing import lasting_folder

_HERE = Path(__file__).parent
_MODULES = {"sitecustomize.py": "customs.py", "septet_plots.py": "plots.py"}


def with_pictures(job: Job) -> Job:
    """The job whose `plt.show()` and `Image.show()` leave figure-1.png, image-1.png and so on in the workspace."""
    folder = str(modules_folder())
    path = os.pathsep.join(filter(None, [folder, job.environment.get("PYTHONPATH", "")]))
    variables = {**job.environment, "PYTHONPATH": path}
    return replace(job, environment=variables, readable=(*job.readable, folder))


@cache
def modules_folder() -> Path:
    """Made once per process; removed when it ends."""
    folder = lasting_folder("modules")
    for name, source in _MODULES.items():
        shutil.copyfile(_HERE / source, folder / name)
    return folder
