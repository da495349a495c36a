"""What surrounds a rung: kernels, networks and spares, each gone when nobody works there any longer."""

import http.server
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec.structs import replace
from sandboxes.rungs import RUNGS

from septet.domain.runs import Cell, Job, Limits, Network, Screen, Server
from septet.errors import SandboxFailed
from septet.sandboxes import job_runner
from septet.sandboxes.interpreters import Interpreters
from septet.sandboxes.job_runner import JobRunner, without_mounts
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.rungs.unsafe import UnsafeLocal

pytestmark = pytest.mark.anyio

FETCH = """
import sys
from urllib.error import URLError
from urllib.request import urlopen
try:
    print(urlopen(sys.argv[1] if len(sys.argv) > 1 else address, timeout=10).read().decode())
except URLError as error:
    print(error)
"""


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from the machine")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the library's own name
        return


@pytest.fixture
def place() -> Generator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def fetched(workspace: Path, address: str, network: Network) -> str:
    command = ("python", "-c", FETCH, f"http://{address}/")
    job = Job(command=command, workspace=str(workspace), network=network)
    return (await JobRunner(Bubblewrap.detect()).run(job)).stdout


async def test_only_named_hosts_are_reached(tmp_path: Path, place: str) -> None:
    assert await fetched(tmp_path, place, (place,)) == "hello from the machine\n"
    assert "403" in await fetched(tmp_path, place, ("127.0.0.1:1",))
    assert "Connection refused" in await fetched(tmp_path, place, ("example.org",))
    assert "Connection refused" in await fetched(tmp_path, place, "off")


async def test_with_the_network_on_this_machine_itself_stays_out_of_reach(tmp_path: Path, place: str) -> None:
    assert "hello" not in await fetched(tmp_path, place, "on")
    assert "hello" not in await fetched(tmp_path, place.replace("127.0.0.1", "127.1"), "on")


async def test_a_servers_own_loopback_works_beside_the_proxy(tmp_path: Path) -> None:
    code = """
import http.server, threading
from urllib.request import urlopen
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urlopen(f"http://127.0.0.1:{server.server_port}/").status)
"""
    job = Job(command=("python", "-c", code), workspace=str(tmp_path), network=("example.org",))
    assert (await JobRunner(Bubblewrap.detect()).run(job)).stdout == "200\n"


async def test_cells_reach_what_they_may_and_know_only_what_came_before_them(
    tmp_path: Path, place: str
) -> None:
    job_runner = JobRunner(Bubblewrap.detect())

    async def cell(code: str, *earlier: str) -> str:
        mode = Cell(code=code, earlier=earlier)
        result = await job_runner.run(Job(command=(), workspace=str(tmp_path), mode=mode, network=(place,)))
        return result.stdout + result.stderr

    first = f"address = 'http://{place}/'"
    assert await cell(first) == ""
    assert await cell(FETCH, first) == "hello from the machine\n"
    assert "address" in await cell("sorted(name for name in globals() if name[0] != '_')", first)
    assert "NameError" in await cell("address")
    session = job_runner.kernels[str(tmp_path)].kernel.session
    assert session is not None
    assert session.program.process.poll() is None
    await job_runner.release(str(tmp_path))
    assert session.program.process.poll() is not None


async def test_a_kernel_needs_bubblewrap(tmp_path: Path) -> None:
    job = Job(command=(), workspace=str(tmp_path), mode=Cell(code="1"))
    with pytest.raises(SandboxFailed, match="only bubblewrap has a kernel"):
        await JobRunner(UnsafeLocal()).run(job)


async def test_a_module_waits_imported_for_the_next_program(tmp_path: Path) -> None:
    job_runner = JobRunner(Bubblewrap.detect())
    code = "import sys; print('wave' in sys.modules)"
    job = Job(command=("python", "-c", code), workspace=str(tmp_path), warm=("wave",))
    assert [(await job_runner.run(job)).stdout for _ in range(3)] == ["False\n", "True\n", "True\n"]
    (spare,) = job_runner.spares.values()
    assert spare.program.process.poll() is None
    await job_runner.release(str(tmp_path))
    assert spare.program.process.poll() is not None


LOOK_AROUND = """
import pathlib
print(pathlib.Path.cwd())
print(pathlib.Path("main.py").read_text(), pathlib.Path("tools/one").read_text(), sep=" ")
pathlib.Path("made").write_text("here")
try:
    pathlib.Path("tools/two").write_text("there")
except OSError:
    print("tools cannot be written")
"""


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock", "unsafe"])
async def test_a_copy_is_run_at_the_folders_path_or_where_it_is(tmp_path: Path, rung: str) -> None:
    """Rungs without mounts run at the copy's own path, with what is shared in its place; the folder stays."""
    origin, copy = tmp_path / "origin", tmp_path / "copy"
    for folder, text in ((origin, "origin"), (copy, "copy")):
        (folder / "tools").mkdir(parents=True)
        (folder / "main.py").write_text(text)
    (origin / "tools" / "one").write_text("shared")
    job = Job(
        command=("python", "-c", LOOK_AROUND),
        workspace=str(copy),
        mounted_at=str(origin),
        shared=("tools",),
    )
    result = await JobRunner(RUNGS[rung](), (Interpreters(tmp_path / "cache").prepare,)).run(job)
    place, read, *rest = result.stdout.splitlines()
    assert place == str(origin if rung == "bubblewrap" else copy)
    assert read == "copy shared"
    assert (copy / "made").read_text() == "here"
    assert not (origin / "made").exists()
    assert (rest == ["tools cannot be written"]) == (rung != "unsafe")


PLAIN = Job(command=("python", "a.py"), workspace="/w")


@pytest.mark.parametrize(
    ("command", "plain"),
    [
        (("python", "a.py"), True),
        (("python3", "a.py", "x"), True),
        (("python", "-m", "pytest"), True),
        (("python", "-c", "1"), True),
        (("python", "-c"), False),
        (("python", "-u", "a.py"), False),
        (("python", "a"), False),
        (("python",), False),
        (("sh", "a.py"), False),
    ],
)
def test_a_waiting_interpreter_runs_what_needs_no_options(command: tuple[str, ...], plain: bool) -> None:
    assert job_runner._is_plain_python(command) is plain  # pyright: ignore[reportPrivateUsage]  # its rule


def test_a_waiting_interpreter_is_for_the_same_folder_limits_and_variables(tmp_path: Path) -> None:
    key, job = job_runner._key, replace(PLAIN, workspace=str(tmp_path))  # pyright: ignore[reportPrivateUsage]  # what it was made for
    same = key(tmp_path, job)
    assert key(tmp_path, replace(job, command=("python", "b.py"), stdin=b"x")) == same
    for other in (
        replace(job, limits=Limits(seconds=1.0)),
        replace(job, environment={"A": "b"}),
        replace(job, readable=("/r",)),
        replace(job, mounted_at="/m"),
        replace(job, shared=(".venv",)),
    ):
        assert key(tmp_path, other) != same
    (tmp_path / ".git").mkdir()
    assert key(tmp_path, job) != same


def test_a_mode_is_a_program_of_ours_around_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def arguments(job: Job) -> tuple[str, ...]:
        plain = job_runner.apply_mode(job)
        assert plain.mode is None
        assert plain.command[-2:] == PLAIN.command
        return plain.command[4:-2]

    monkeypatch.setattr("shutil.which", "/bin/{}".format)
    assert job_runner.apply_mode(PLAIN) is PLAIN
    assert arguments(replace(PLAIN, mode=Screen(picture="p", seconds=2.0))) == ("p", "2.0", "3.0", "perhaps")
    assert arguments(replace(PLAIN, mode=Screen(needed=True))) == ("screenshot.png", "10.0", "0.6", "needed")
    served = replace(PLAIN, mode=Server(path="/x", port=5, seconds=3.0))
    assert arguments(served) == ("5", "/x", "3.0", "perhaps")
    assert job_runner.apply_mode(served).stdin == b""
    assert arguments(replace(PLAIN, mode=Server(needed=True))) == ("0", "/", "20.0", "needed")
    held = replace(PLAIN, mode=Server(holds="hällo"))
    assert arguments(held) == ("0", "/", "20.0", "checked")
    assert job_runner.apply_mode(held).stdin == "hällo".encode()
    assert job_runner.apply_mode(replace(PLAIN, mode=Server(holds=""))).command[7] == "checked"
    with pytest.raises(SandboxFailed, match="in a kernel only"):
        job_runner.apply_mode(replace(PLAIN, mode=Cell(code="x")))


def test_without_a_virtual_screen_only_a_needed_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", dict[str, str]().get)
    assert job_runner.apply_mode(replace(PLAIN, mode=Screen())) == PLAIN
    with pytest.raises(SandboxFailed, match="apt install xvfb"):
        job_runner.apply_mode(replace(PLAIN, mode=Screen(needed=True)))


def test_where_nothing_can_be_mounted_what_is_shared_is_linked(tmp_path: Path) -> None:
    person, work = tmp_path / "person", tmp_path / "work"
    for folder in (person / ".venv", person / "full", work / ".venv", work / "full"):
        folder.mkdir(parents=True)
    (work / "full" / "kept").write_text("x")
    job = Job(
        command=("x",),
        workspace=str(work),
        mounted_at=str(person),
        shared=(".venv", "full", "none"),
        readable=("/r",),
    )
    plain = job_runner.without_mounts(job)
    assert (work / ".venv").readlink() == person / ".venv"
    assert (work / "full" / "kept").read_text() == "x"
    assert plain == replace(
        job,
        mounted_at="",
        shared=(),
        readable=("/r", *(str(person / name) for name in (".venv", "full", "none"))),
    )
    assert job_runner.without_mounts(PLAIN) == PLAIN


def test_without_mounts_a_shared_file_is_a_copy_that_programs_may_spoil(tmp_path: Path) -> None:
    origin, work = tmp_path / "origin", tmp_path / "work"
    for folder in (origin, work):
        (folder / "node_modules").mkdir(parents=True)
    (origin / "film.bin").write_bytes(b"film")
    (work / "film.bin").touch()
    job = Job(
        command=("true",), workspace=str(work), mounted_at=str(origin), shared=("film.bin", "node_modules")
    )
    without_mounts(job)
    assert (work / "node_modules").is_symlink()
    (work / "film.bin").write_bytes((work / "film.bin").read_bytes() + b" spoilt")
    assert (origin / "film.bin").read_bytes() == b"film"
    assert (work / "film.bin").read_bytes() == b"film spoilt"
