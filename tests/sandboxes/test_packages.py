"""Packages come into an environment of the workspace's own, from the index only, as the policy says."""

import http.server
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from septet.domain.runs import Job
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.packages import Packages

pytestmark = pytest.mark.anyio

WHEEL = "emoji-9.9-py3-none-any.whl"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the library's own name
        return


@contextmanager
def index(folder: Path) -> Generator[str]:
    """A package index on this machine with one small distribution."""
    page = folder / "simple" / "emoji"
    page.mkdir(parents=True)
    with zipfile.ZipFile(page / WHEEL, "w") as wheel:
        wheel.writestr("emoji/__init__.py", "smile = ':)'\n")
        wheel.writestr("emoji-9.9.dist-info/METADATA", "Metadata-Version: 2.1\nName: emoji\nVersion: 9.9\n")
        wheel.writestr(
            "emoji-9.9.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("emoji-9.9.dist-info/RECORD", "")
    (page / "index.html").write_text(f'<a href="{WHEEL}">{WHEEL}</a>')
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def packages(tmp_path: Path, place: str, policy: str = "auto") -> Packages:
    assert policy in ("off", "ask", "auto")
    return Packages(
        folder=tmp_path / "environment",
        sandbox=Bubblewrap.found(),
        policy=policy,
        hosts=frozenset({place}),
        index=f"http://{place}/simple",
    )


def job(tmp_path: Path, code: str) -> Job:
    workspace = tmp_path / "work"
    workspace.mkdir(exist_ok=True)
    return Job(command=("python", "-c", code), workspace=str(workspace))


async def test_a_package_is_installed_and_only_the_workspace_sees_it(tmp_path: Path) -> None:
    with index(tmp_path / "index") as place:
        kept = packages(tmp_path, place)
        provision = await kept.provide(["emoji", "no_such_name"])
    assert provision.installed == ("emoji",), provision
    assert provision.unknown == ("no_such_name",)
    wanted = job(tmp_path, "import emoji, pytest; print(emoji.smile)")
    assert (await kept.sandbox.run(kept.applied(wanted))).stdout == ":)\n"
    assert "ModuleNotFoundError" in (await kept.sandbox.run(wanted)).stderr


async def test_a_program_cannot_change_its_environment(tmp_path: Path) -> None:
    with index(tmp_path / "index") as place:
        kept = packages(tmp_path, place)
        await kept.provide(["emoji"])
    result = await kept.sandbox.run(kept.applied(job(tmp_path, "import emoji; open(emoji.__file__, 'a')")))
    assert "Read-only file system" in result.stderr


async def test_a_host_that_is_not_named_cannot_be_installed_from(tmp_path: Path) -> None:
    with index(tmp_path / "index") as place:
        kept = Packages(
            folder=tmp_path / "environment",
            sandbox=Bubblewrap.found(),
            policy="auto",
            hosts=frozenset({"pypi.org"}),
            index=f"http://{place}/simple",
        )
        provision = await kept.provide(["emoji"])
    assert provision.installed == ()
    assert provision.refused == "the installer failed"
    assert "403" in provision.output


async def test_a_failure_is_told_with_the_installers_words(tmp_path: Path) -> None:
    with index(tmp_path / "index") as place:
        provision = await packages(tmp_path, place).provide(["yaml"])
    assert provision.refused
    assert "pyyaml" in provision.output


async def test_the_policy_decides(tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []

    async def approve(wanted: tuple[str, ...]) -> bool:
        asked.append(wanted)
        return False

    assert (await packages(tmp_path, "x", "off").provide(["emoji"])).refused == "installing is off"
    assert (await packages(tmp_path, "x", "ask").provide(["emoji"])).refused == "the person did not agree"
    assert (
        await packages(tmp_path, "x", "ask").provide(["emoji"], approve)
    ).refused == "the person did not agree"
    assert asked == [("emoji",)]
    assert not (tmp_path / "environment").exists()
