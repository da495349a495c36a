"""Packages come into an environment of the workspace's own, from the index only, as the policy says."""

import sysconfig
from pathlib import Path

import pytest
from msgspec.structs import replace
from sandboxes.indexes import index

from septet.domain.packages import Installation, MissingPackages
from septet.domain.runs import Job, RunResult
from septet.sandboxes.environment import base_interpreter, make_environment
from septet.sandboxes.interpreters import Interpreters, site_packages
from septet.sandboxes.packages import SETUP_CACHE, Index, PackageInstaller, find_uv, npm_registry
from septet.sandboxes.rungs.bubblewrap import Bubblewrap

pytestmark = pytest.mark.anyio


def packages(tmp_path: Path, place: str) -> PackageInstaller:
    return PackageInstaller(tmp_path / "environments", Bubblewrap.detect(), Index(f"http://{place}/simple"))


def workspace(tmp_path: Path) -> str:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    return str(folder)


async def run(kept: PackageInstaller, tmp_path: Path, code: str) -> RunResult:
    job = Job(command=("python", "-c", code), workspace=workspace(tmp_path))
    return await kept.sandbox.run(kept.prepare(Interpreters(tmp_path / "cache").prepare(job)))


async def test_a_package_is_installed_and_only_the_workspace_sees_it(tmp_path: Path) -> None:
    with index(tmp_path / "index", "emoji") as place:
        kept = packages(tmp_path, place)
        done = await kept.install(workspace(tmp_path), MissingPackages(distributions=("emoji",)))
    assert (done.installed, done.failed) == (("emoji",), ()), done
    assert (await run(kept, tmp_path, "import emoji, pytest; print(emoji.smile)")).stdout == ":)\n"
    (tmp_path / "other").mkdir()
    elsewhere = Job(command=("python", "-c", "import emoji"), workspace=str(tmp_path / "other"))
    assert "ModuleNotFoundError" in (await kept.sandbox.run(kept.prepare(elsewhere))).stderr


async def test_a_project_with_an_environment_of_its_own_keeps_it_and_has_the_package_too(
    tmp_path: Path,
) -> None:
    project = Path(workspace(tmp_path)) / ".venv"
    make_environment(project, base_interpreter())
    Path(site_packages(project)[0], "its_own.py").write_text("where = 'in the project'\n")
    with index(tmp_path / "index", "emoji") as place:
        kept = packages(tmp_path, place)
        await kept.install(workspace(tmp_path), MissingPackages(distributions=("emoji",)))
    code = "import sys, emoji, its_own, pytest; print(emoji.smile, its_own.where, sys.prefix)"
    assert (await run(kept, tmp_path, code)).stdout == f":) in the project {project}\n"
    assert (
        await kept.find_missing(workspace(tmp_path), {"main.py": "import emoji, its_own"})
        == MissingPackages()
    )


async def test_an_environment_of_an_older_version_no_longer_shows_septets_packages(tmp_path: Path) -> None:
    with index(tmp_path / "index", "emoji") as place:
        kept = packages(tmp_path, place)
        await kept.install(workspace(tmp_path), MissingPackages(distributions=("emoji",)))
    (home,) = kept.folder.iterdir()
    Path(site_packages(home)[0], "septet.pth").write_text(sysconfig.get_path("purelib"))
    assert "No module named 'click'" in (await run(kept, tmp_path, "import emoji, click")).stderr


async def test_what_is_missing_is_neither_ours_nor_the_systems_nor_the_persons_own(tmp_path: Path) -> None:
    kept = packages(tmp_path, "x")
    folder = Path(workspace(tmp_path))
    (folder / "notes.py").touch()
    (folder / "parts").mkdir()
    (folder / "test").mkdir()
    (folder / "test/common.py").touch()
    assert not await kept.find_missing(str(folder), {"test/test_a.py": "import common, notes"})
    code = "import os, pytest, helper, notes, parts.a, cv2, yaml, sklearn.svm, no_such_name, PIL_like\nfrom . import x"
    missing = await kept.find_missing(str(folder), {"main.py": code, "helper.py": "import bs4\nimport main"})
    assert missing == MissingPackages(
        distributions=("beautifulsoup4", "opencv-python-headless", "pyyaml", "scikit-learn"),
        unknown=("PIL_like", "no_such_name"),
    )


async def test_a_name_that_is_not_in_the_map_is_taken_only_if_the_index_proves_it(tmp_path: Path) -> None:
    with index(tmp_path / "index", "curious", other="liar") as place:
        kept = packages(tmp_path, place)
        wanted = MissingPackages(unknown=("curious", "liar", "nowhere"))
        done = await kept.install(workspace(tmp_path), wanted)
    assert (done.installed, done.failed) == (("curious",), ("liar", "nowhere")), done
    assert "with this import" in done.why
    assert (await run(kept, tmp_path, "import curious; print(curious.smile)")).stdout == ":)\n"
    assert await kept.find_missing(workspace(tmp_path), {"main.py": "import curious"}) == MissingPackages()


async def test_a_program_cannot_change_its_environment(tmp_path: Path) -> None:
    with index(tmp_path / "index", "emoji") as place:
        kept = packages(tmp_path, place)
        await kept.install(workspace(tmp_path), MissingPackages(distributions=("emoji",)))
    result = await run(kept, tmp_path, "import emoji; open(emoji.__file__, 'a')")
    assert "Read-only file system" in result.stderr


async def test_a_failure_is_told_with_the_installers_words(tmp_path: Path) -> None:
    with index(tmp_path / "index", "emoji") as place:
        done = await packages(tmp_path, place).install(
            workspace(tmp_path), MissingPackages(distributions=("six",))
        )
    assert (done.installed, done.failed) == ((), ("six",))
    assert "six" in done.output


def test_the_index_is_the_one_that_uv_and_pip_are_told() -> None:
    public = Index.from_environment({})
    assert (public.options, "pypi.org:443" in public.hosts) == ((), True)
    own = Index.from_environment({"PIP_INDEX_URL": "https://Packages.example.org/simple"})
    assert own.options == ("--default-index", "https://Packages.example.org/simple")
    assert "packages.example.org:443" in own.hosts
    assert "pypi.org:443" not in own.hosts


async def test_only_the_index_can_be_reached_while_installing(tmp_path: Path) -> None:
    """A page of the index that leads elsewhere leads nowhere."""
    with index(tmp_path / "elsewhere", "emoji") as other, index(tmp_path / "index", "six") as place:
        page = tmp_path / "index" / "simple" / "emoji" / "index.html"
        page.parent.mkdir()
        page.write_text(
            f'<a href="http://{other}/simple/emoji/emoji-9.9-py3-none-any.whl">emoji-9.9-py3-none-any.whl</a>'
        )
        done = await packages(tmp_path, place).install(
            workspace(tmp_path), MissingPackages(distributions=("emoji",))
        )
    assert done.failed == ("emoji",)
    assert "403" in done.output


class Recorded:
    """A sandbox that notes its jobs and ends each as a test says; it may make a module in the trial folder."""

    def __init__(self, *results: RunResult, module: str = "") -> None:
        self._results = [*results]
        self._module = module
        self.jobs: list[Job] = []

    async def run(self, job: Job, listen: object = None) -> RunResult:
        self.jobs.append(job)
        if "--target" in job.command:
            trial = Path(job.command[job.command.index("--target") + 1])
            trial.mkdir(parents=True)
            (trial / f"{self._module or 'other'}.py").write_text("")
        return self._results.pop(0)


GOOD, BAD = RunResult(exit_code=0, stdout="out\n", stderr="err\n"), RunResult(exit_code=1, stderr=" no \n\n")


async def installed(
    tmp_path: Path, sandbox: Recorded, distributions: tuple[str, ...], unknown: tuple[str, ...] = ()
) -> Installation:
    kept = PackageInstaller(tmp_path / "environments", sandbox, Index("http://127.0.0.1:9/simple"))
    missing = MissingPackages(distributions=distributions, unknown=unknown)
    done = await kept.install(workspace(tmp_path), missing)
    assert 0 <= done.seconds < 600
    return replace(done, seconds=0.0)


async def test_what_an_installation_gave_is_told(tmp_path: Path) -> None:
    assert await installed(tmp_path, Recorded(GOOD), ("emoji",)) == Installation(
        installed=("emoji",), output="out\nerr\n"
    )
    assert await installed(tmp_path, Recorded(BAD), ("emoji",), ()) == Installation(
        failed=("emoji",), why="no", output=" no \n\n"
    )
    unproven = "the index has no distribution of that name with this import"
    nothing = Recorded(GOOD)
    assert await installed(tmp_path, nothing, (), ("odd",)) == Installation(failed=("odd",), why=unproven)
    assert len(nothing.jobs) == 1
    proven = await installed(tmp_path, Recorded(GOOD, GOOD, module="odd"), ("emoji",), ("odd",))
    assert proven == Installation(installed=("emoji", "odd"), output="out\nerr\n")
    partly = await installed(tmp_path, Recorded(BAD, GOOD, module="odd"), ("emoji",), ("odd",))
    assert partly == Installation(installed=("emoji",), failed=("odd",), why=unproven, output="out\nerr\n")
    failed = await installed(tmp_path, Recorded(BAD, BAD), ("emoji",), ("odd",))
    assert failed.failed == ("emoji", "odd")


async def test_only_wheels_of_the_index_are_installed_and_nothing_is_left(tmp_path: Path) -> None:
    sandbox = Recorded(GOOD)
    await installed(tmp_path, sandbox, ("emoji",))
    (job,) = sandbox.jobs
    (home,) = (tmp_path / "environments").iterdir()
    command = list(job.command)
    start = command.index("pip")
    assert command[start:] == [
        "pip", "install", "--only-binary", ":all:", "--link-mode", "copy", "--cache-dir", str(home / ".cache"),
        "--default-index", "http://127.0.0.1:9/simple", "--python", str(home / "bin" / "python"), "emoji",
    ]  # fmt: skip
    assert (job.workspace, job.environment["UV_OFFLINE"], job.environment["UV_NO_CONFIG"]) == (
        str(home),
        "0",
        "1",
    )
    assert job.readable[1] == command[start - 1] == find_uv()
    assert sorted(path.name for path in home.iterdir()) == ["bin", "lib", "pyvenv.cfg"]


@pytest.mark.parametrize(
    ("address", "hosts", "options"),
    [
        ("", {"pypi.org:443", "files.pythonhosted.org:443"}, ()),
        ("https://Mirror.example/simple", {"mirror.example:443"}, ("--default-index", 1)),
        ("http://127.0.0.1:8080/x", {"127.0.0.1:8080"}, ("--default-index", 1)),
        ("http://mirror/x", {"mirror:80"}, ("--default-index", 1)),
        ("ftp://mirror/x", {"mirror:443"}, ("--default-index", 1)),
    ],
)
def test_only_the_hosts_of_the_index_are_reached(
    address: str, hosts: set[str], options: tuple[object, ...]
) -> None:
    index = Index(address)
    assert index.hosts == hosts | {"files.pythonhosted.org:443"}
    assert index.options == ((options[0], address) if options else ())


def test_npms_registry_is_the_one_that_npm_is_told() -> None:
    assert npm_registry({}).address == "https://registry.npmjs.org/"
    assert npm_registry({"npm_config_registry": "http://a/"}).address == "http://a/"
    both = {"npm_config_registry": "http://a/", "NPM_CONFIG_REGISTRY": "http://b/"}
    assert npm_registry(both).address == "http://b/"


def test_a_setup_reaches_its_indexes_and_keeps_its_downloads_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://npm:1/")
    kept = PackageInstaller(tmp_path, Recorded(), Index("http://index:2/simple"))
    job = kept.setup_job(
        Job(command=("x",), workspace="/w", readable=("/r",), network=("mine:3",), environment={"A": "b"})
    )
    assert job.network == ("files.pythonhosted.org:443", "index:2", "mine:3", "npm:1")
    found = {name: job.environment[name] for name in ("UV_DEFAULT_INDEX", "PIP_INDEX_URL", "UV_OFFLINE")}
    assert found == {
        "UV_DEFAULT_INDEX": "http://index:2/simple",
        "PIP_INDEX_URL": "http://index:2/simple",
        "UV_OFFLINE": "0",
    }
    caches = {name: job.environment[name] for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache")}
    assert caches == {
        "UV_CACHE_DIR": f"/w/{SETUP_CACHE}/uv",
        "PIP_CACHE_DIR": f"/w/{SETUP_CACHE}/pip",
        "npm_config_cache": f"/w/{SETUP_CACHE}/npm",
    }
    uv = find_uv()
    assert uv is not None
    assert job.readable == ("/r", uv)
    assert job.environment["PATH"].startswith(f"{Path(uv).parent}:")
    public = PackageInstaller(tmp_path, Recorded(), Index()).setup_job(Job(command=("x",), workspace="/w"))
    assert "UV_DEFAULT_INDEX" not in public.environment
    assert public.network == ("files.pythonhosted.org:443", "npm:1", "pypi.org:443")


async def test_modules_beside_the_sources_and_in_src_are_the_programs_own(tmp_path: Path) -> None:
    root = Path(workspace(tmp_path))
    (root / "src").mkdir()
    (root / "pkg" / "deep").mkdir(parents=True)
    (root / "src" / "emoji.py").write_text("")
    (root / "pkg" / "yaml").mkdir()
    (root / "pkg" / "deep" / "rich.py").write_text("")
    kept = PackageInstaller(tmp_path / "environments", Recorded(), Index())
    sources = {"pkg/deep/a.py": "import emoji, yaml, rich, numpy, curious, pytest, os"}
    assert await kept.find_missing(str(root), sources) == MissingPackages(
        distributions=("numpy",), unknown=("curious",)
    )
