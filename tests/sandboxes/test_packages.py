"""Packages come into an environment of the workspace's own, from the index only, as the policy says."""

import sysconfig
from pathlib import Path

import pytest
from sandboxes.indexes import index

from septet.domain.packages import MissingPackages
from septet.domain.runs import Job, RunResult
from septet.sandboxes.environment import base_interpreter, make_environment
from septet.sandboxes.interpreters import Interpreters, site_packages
from septet.sandboxes.packages import Index, PackageInstaller
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
