"""Which Python a program runs with: its project's own, or a plain one. Nothing of Septet's own environment is in it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from msgspec.structs import replace

from septet.common.temporary import process_folder
from septet.domain.pytest_report import PYTEST_OPTIONS
from septet.domain.runs import Job
from septet.errors import SandboxFailed
from septet.sandboxes.environment import base_interpreter, plain_environment, search_path

_INSIDE = Path(__file__).with_name("inside")
_MODULES = {
    "sitecustomize.py": "sitecustomize.py",
    "septet_plots.py": "matplotlib_backend.py",
    "septet_pytest.py": "pytest_report.py",
    "septet_pytest.ini": "septet_pytest.ini",
}
_REAL_NAME = re.compile(r"python(3\.\d+)")
_REQUIREMENT = re.compile(r"[\w.-]+")
SOURCES = "src"
_SOURCES, _SITES, _PYTEST = "SEPTET_SOURCES", "SEPTET_SITES", "SEPTET_PYTEST"
"""Read by `inside/sitecustomize.py`, which every Python inside begins with."""


@dataclass(frozen=True, slots=True)
class ProjectEnvironment:
    """A `.venv` that stands in a project, and the interpreter that it is built upon."""

    folder: Path
    interpreter: Path
    version: str

    @property
    def visible_paths(self) -> tuple[Path, ...]:
        """What a program has to see: the environment, the interpreter and its library, and nothing around them.

        The environment may know its interpreter by another path than the real one; where that leads to the same
        folder, it is shown too.
        """
        real = self.interpreter.parent.parent
        known = _home_of(self.folder).parent
        prefixes = [real, known] if known != real and _real(known) == real else [real]
        return (self.folder, *(prefix / name for prefix in prefixes for name in ("bin", "lib")))


@dataclass(frozen=True, slots=True)
class Interpreters:
    """Gives every job its Python; `cache` is where pytest is kept for projects that have none."""

    cache: Path

    def prepare(self, job: Job) -> Job:
        own = project_environment(Path(job.home or job.workspace))
        pytest = pytest_folder(self.cache)
        folders = [own.folder / "bin", pytest / "bin"] if own else [pytest / "bin"]
        variables = {
            "PATH": search_path(folders),
            "PYTHONPATH": str(modules_folder()),
            _PYTEST: str(pytest),
            **({"VIRTUAL_ENV": str(own.folder)} if own else {}),
            **({_SOURCES: f"{job.place}/{SOURCES}"} if source_folder(Path(job.workspace)) else {}),
            **job.environment,
        }
        seen = (pytest, *(own.visible_paths if own else ()))
        command = ("python", str(modules_folder() / "septet_pytest.py"), *PYTEST_OPTIONS, *job.only)
        return replace(
            job,
            command=command if job.tests else job.command,
            environment=variables,
            readable=(*job.readable, *map(str, seen)),
        )


def add_site_packages(job: Job, site: Path, environment: Path) -> Job:
    """The job with one more environment: its interpreter, unless the project has its own, and what is installed."""
    variables = dict(job.environment)
    if "VIRTUAL_ENV" not in variables:
        path = variables.get("PATH", search_path())
        variables |= {"PATH": f"{environment / 'bin'}{os.pathsep}{path}", "VIRTUAL_ENV": str(environment)}
    else:
        variables[_SITES] = str(site)
    return replace(job, environment=variables, readable=(*job.readable, str(environment)))


def source_folder(workspace: Path) -> Path | None:
    """`src`, where packages are kept there: what is tested is the project's own and not what is installed."""
    folder = workspace / SOURCES
    with suppress(OSError):
        if not folder.is_dir() or (folder / "__init__.py").exists():
            return None
        found = (
            entry for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()
        )
        return folder if any(found) else None
    return None


def project_environment(project: Path) -> ProjectEnvironment | None:
    """Only one that links to a Python installation outside: what stands in the project may have been made there."""
    folder = project.resolve() / ".venv"
    link = folder / "bin" / "python"
    try:
        if folder.is_symlink() or not (folder / "pyvenv.cfg").is_file() or not link.is_symlink():
            return None
    except OSError:  # a folder that cannot be looked at: the run says why
        return None
    interpreter = _real(link)
    named = _REAL_NAME.fullmatch(interpreter.name)
    if named is None or interpreter.is_relative_to(project) or not _is_installation(interpreter, named[1]):
        return None
    return ProjectEnvironment(folder, interpreter, named[1])


def _is_installation(interpreter: Path, version: str) -> bool:
    """Nobody gets to see a folder by calling it an interpreter's."""
    prefix = interpreter.parent.parent
    library = prefix / "lib" / f"python{version}" / "os.py"
    whole = interpreter.parent.name == "bin" and library.is_file() and os.access(interpreter, os.X_OK)
    return whole and prefix != Path.home()


def _home_of(environment: Path) -> Path:
    with suppress(OSError, UnicodeDecodeError):
        for line in (environment / "pyvenv.cfg").read_text().splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip().startswith("/"):
                return Path(value.strip())
    return Path("/")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def site_packages(environment: Path) -> list[str]:
    """Where an environment keeps what is installed in it."""
    return [str(path) for path in sorted(environment.glob("lib/python3*/site-packages"))]


@cache
def modules_folder() -> Path:
    """Modules that every Python inside finds, beside the interpreter of this process."""
    folder = plain_environment() / "modules"
    folder.mkdir()
    for name, source in _MODULES.items():
        shutil.copyfile(_INSIDE / source, folder / name)
    return folder


@lru_cache(maxsize=4)
def pytest_folder(cache: Path) -> Path:
    """pytest and what it needs, and nothing else, made once from what is installed beside Septet."""
    distributions = list(dependency_closure("pytest"))
    known = "\n".join(
        [sys.implementation.cache_tag, *sorted(f"{one.name} {one.version}" for one in distributions)]
    )
    name = f"pytest-{distributions[0].version}-{sha256(known.encode()).hexdigest()[:8]}"
    if (cache / name).is_dir():
        return cache / name
    try:
        cache.mkdir(parents=True, exist_ok=True)
        return _publish(
            _build(distributions, Path(tempfile.mkdtemp(prefix=".pytest-", dir=cache))), cache / name
        )
    except OSError:
        return _build(distributions, process_folder("pytest"))


def _publish(made: Path, wanted: Path) -> Path:
    """Under its own name, unless somebody else was quicker."""
    try:
        made.rename(wanted)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not wanted.is_dir():
            raise
    return wanted


def _build(distributions: Sequence[Distribution], folder: Path) -> Path:
    folder.chmod(0o755)
    copy_distributions(distributions, folder)
    program = folder / "bin" / "pytest"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        "#!/usr/bin/env python\nimport sys\n\nimport pytest\n\nsys.exit(pytest.console_main())\n"
    )
    program.chmod(0o755)
    if not (folder / "_pytest" / "__pycache__").is_dir():
        _compile(folder)
    return folder


def _compile(folder: Path) -> None:
    """What every run imports is compiled once: sandboxes leave no caches behind."""
    code = f"import sys; sys.path.append({str(folder)!r}); import pytest; pytest.main(['--version'])"
    command = [str(base_interpreter()), "-I", "-S", "-c", code]
    subprocess.run(command, env={}, cwd="/", capture_output=True, check=False)


def dependency_closure(name: str) -> Iterator[Distribution]:
    """An installed distribution and all that it needs here; a need that depends on the system is left out."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        found = _find_distribution(waiting.pop(0))
        if found.name.lower() in seen:
            continue
        seen.add(found.name.lower())
        yield found
        needs = [_REQUIREMENT.match(need) for need in found.requires or () if ";" not in need]
        waiting += [need[0] for need in needs if need]


def _find_distribution(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise SandboxFailed(f"{name} is not installed beside Septet", "pip install septet again") from error


def copy_distributions(distributions: Sequence[Distribution], folder: Path) -> None:
    """The files of distributions, and what is compiled of them, in a folder of their own."""
    for one in distributions:
        for file in one.files or ():
            if ".." not in file.parts and file.parts[0] != "bin":
                _copy_file(Path(str(one.locate_file(file))), folder / file)


def _copy_file(source: Path, target: Path) -> None:
    _make_folder(target.parent)
    with suppress(FileNotFoundError):
        try:
            os.link(source, target)
        except FileExistsError:
            return
        except OSError:
            shutil.copy2(source, target)
    if source.suffix == ".py":
        compiled = f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        if (source.parent / "__pycache__" / compiled).exists():
            _copy_file(source.parent / "__pycache__" / compiled, target.parent / "__pycache__" / compiled)


@cache
def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
