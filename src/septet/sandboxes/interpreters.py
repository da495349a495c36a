"""Chooses a program's Python: its project's own, or a plain one, never Septet's environment."""

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
from threading import Lock

from msgspec.structs import replace

from septet.common.temporary import process_folder
from septet.domain.pytest_report import PYTEST_OPTIONS
from septet.domain.runs import Job
from septet.errors import SandboxFailed
from septet.sandboxes.environment import base_interpreter, interpreter_folders, plain_environment, search_path

_INSIDE = Path(__file__).with_name("inside")
_MODULES = {
    "sitecustomize.py": "sitecustomize.py",
    "septet_plots.py": "matplotlib_backend.py",
    "septet_pytest.py": "pytest_report.py",
    "septet_audit.py": "pytest_audit.py",
    "septet_equality.py": "pytest_equality.py",
    "septet_pytest.ini": "septet_pytest.ini",
}
_REAL_NAME = re.compile(r"python(3\.\d+)")
_REQUIREMENT = re.compile(r"[\w.-]+")
SOURCES = "src"
_SOURCES, _SITES, _PYTEST = "SEPTET_SOURCES", "SEPTET_SITES", "SEPTET_PYTEST"
"""Variables for `inside/sitecustomize.py`, which every Python inside runs first."""


@dataclass(frozen=True, slots=True)
class ProjectEnvironment:
    """The `.venv` of a project, and the interpreter below it."""

    folder: Path
    interpreter: Path
    version: str

    @property
    def visible_paths(self) -> tuple[Path, ...]:
        """The paths that a program needs: the environment, the interpreter and its library, and nothing else.

        The environment may refer to its interpreter by another path; if that leads to the same folder, it is
        included too.
        """
        real = self.interpreter.parent.parent
        named = _home_of(self.folder).parent
        prefixes = [real, named] if named != real and _real(named) == real else [real]
        return (self.folder, *(prefix / name for prefix in prefixes for name in ("bin", "lib")))


@dataclass(frozen=True, slots=True)
class Interpreters:
    """Gives each job its Python; `cache` holds pytest for projects without it."""

    cache: Path

    def prepare(self, job: Job) -> Job:
        own = project_environment(Path(job.home or job.workspace)) or setup_environment(job.setup)
        pytest = pytest_folder(self.cache)
        seen = own and environment_path(job, own)
        folders = [seen / "bin", pytest / "bin"] if seen else [pytest / "bin"]
        variables = {
            "PATH": search_path(folders),
            "PYTHONPATH": str(modules_folder()),
            _PYTEST: str(pytest),
            **({"VIRTUAL_ENV": str(seen)} if seen else {}),
            **({_SOURCES: f"{job.place}/{SOURCES}"} if source_folder(Path(job.workspace)) else {}),
            **job.environment,
        }
        visible = (pytest, *(own.visible_paths if own else ()))
        command = ("python", str(modules_folder() / "septet_pytest.py"), *PYTEST_OPTIONS, *job.only)
        return replace(
            job,
            command=command if job.tests else job.command,
            environment=variables,
            readable=(*job.readable, *map(str, visible)),
        )


def add_site_packages(job: Job, site: Path, environment: Path) -> Job:
    """The job with one more environment: its packages and, unless the project has one, its interpreter."""
    variables = dict(job.environment)
    if "VIRTUAL_ENV" not in variables:
        path = variables.get("PATH", search_path())
        variables |= {"PATH": f"{environment / 'bin'}{os.pathsep}{path}", "VIRTUAL_ENV": str(environment)}
    else:
        variables[_SITES] = str(site)
    return replace(job, environment=variables, readable=(*job.readable, str(environment)))


def source_folder(workspace: Path) -> Path | None:
    """`src`, if it holds packages: tests must use the project's code, not an installed copy."""
    folder = workspace / SOURCES
    with suppress(OSError):
        if not folder.is_dir() or (folder / "__init__.py").exists():
            return None
        modules = (
            entry for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()
        )
        return folder if any(modules) else None
    return None


def project_environment(project: Path) -> ProjectEnvironment | None:
    """The project's `.venv`, only if it links to a Python outside: programs may have written one inside."""
    folder = project.resolve() / ".venv"
    link = folder / "bin" / "python"
    try:
        if folder.is_symlink() or not (folder / "pyvenv.cfg").is_file() or not link.is_symlink():
            return None
    except OSError:  # an unreadable folder: the run reports why
        return None
    interpreter = _real(link)
    name = _REAL_NAME.fullmatch(interpreter.name)
    if name is None or interpreter.is_relative_to(project) or not _is_installation(interpreter, name[1]):
        return None
    return ProjectEnvironment(folder, interpreter, name[1])


def setup_environment(setup: str) -> ProjectEnvironment | None:
    """The `.venv` that the setup command has made, if its Python is one that programs see anyway."""
    made = project_environment(Path(setup)) if setup else None
    visible = (*interpreter_folders(), Path("/usr"))
    return made if made and any(made.interpreter.is_relative_to(folder) for folder in visible) else None


def environment_path(job: Job, own: ProjectEnvironment) -> Path:
    """The path at which the program sees its environment."""
    is_mounted = bool(job.mounted_at and job.setup) and own.folder.is_relative_to(Path(job.setup).resolve())
    return Path(job.mounted_at) / own.folder.name if is_mounted else own.folder


def _is_installation(interpreter: Path, version: str) -> bool:
    """Whether this is a real Python installation: else a program could expose any folder by a link to it."""
    prefix = interpreter.parent.parent
    library = prefix / "lib" / f"python{version}" / "os.py"
    is_complete = interpreter.parent.name == "bin" and library.is_file() and os.access(interpreter, os.X_OK)
    return is_complete and prefix != Path.home()


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
    """The package folders of an environment."""
    return [str(path) for path in sorted(environment.glob("lib/python3*/site-packages"))]


_MAKING_MODULES = Lock()


def modules_folder() -> Path:
    """A folder with our modules, on the path of every Python inside. Runs that begin at once wait for its maker."""
    with _MAKING_MODULES:
        return make_modules_folder()


@cache
def make_modules_folder() -> Path:
    folder = plain_environment() / "modules"
    folder.mkdir()
    for name, source in _MODULES.items():
        shutil.copyfile(_INSIDE / source, folder / name)
    return folder


@lru_cache(maxsize=4)
def pytest_folder(cache: Path) -> Path:
    """A folder with pytest and its dependencies, copied once from the packages beside Septet."""
    distributions = list(dependency_closure("pytest"))
    inputs = "\n".join(
        [
            sys.implementation.cache_tag,
            *sorted(f"{distribution.name} {distribution.version}" for distribution in distributions),
        ]
    )
    name = f"pytest-{distributions[0].version}-{sha256(inputs.encode()).hexdigest()[:8]}"
    if (cache / name).is_dir():
        return cache / name
    try:
        cache.mkdir(parents=True, exist_ok=True)
        return _publish(
            _build(distributions, Path(tempfile.mkdtemp(prefix=".pytest-", dir=cache))), cache / name
        )
    except OSError:
        return _build(distributions, process_folder("pytest"))


def _publish(folder: Path, target: Path) -> Path:
    """Rename a folder to its final name, unless another process has created that meanwhile."""
    try:
        folder.rename(target)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        if not target.is_dir():
            raise
    return target


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
    """Compile what every run imports once, because sandboxes leave no caches behind."""
    code = f"import sys; sys.path.append({str(folder)!r}); import pytest; pytest.main(['--version'])"
    command = [str(base_interpreter()), "-I", "-S", "-c", code]
    subprocess.run(command, env={}, cwd="/", capture_output=True, check=False)


def dependency_closure(name: str) -> Iterator[Distribution]:
    """An installed distribution and its dependencies; those with environment markers are left out."""
    seen: set[str] = set()
    queue = [name]
    while queue:
        package = _find_distribution(queue.pop(0))
        if package.name.lower() in seen:
            continue
        seen.add(package.name.lower())
        yield package
        requirements = [
            _REQUIREMENT.match(requirement)
            for requirement in package.requires or ()
            if ";" not in requirement
        ]
        queue += [requirement[0] for requirement in requirements if requirement]


def _find_distribution(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise SandboxFailed(f"{name} is not installed beside Septet", "pip install septet again") from error


def copy_distributions(distributions: Sequence[Distribution], folder: Path) -> None:
    """Copy the files of distributions, with their compiled forms, into a folder."""
    for package in distributions:
        for file in package.files or ():
            if ".." not in file.parts and file.parts[0] != "bin":
                _copy_file(Path(str(package.locate_file(file))), folder / file)


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
