"""Builds the wheel and tries it where people have trouble, on every Python that is named; prints a table.

Run: python scripts/wheel_check.py [PYTHON…]    (as root, so that a plain user can be tried too)

Everything happens in a folder whose path has a space and a letter that is not ASCII, with LC_ALL=C.
"""

import http.server
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import trustme

ROOT = Path(__file__).parent.parent
NOBODY = 65534
HOUR = 3600


class Outcome(NamedTuple):
    what: str
    python: str
    well: bool
    detail: str


class Place(NamedTuple):
    """An environment with the wheel installed."""

    python: str
    folder: Path

    @property
    def septet(self) -> str:
        return str(self.folder / "venv" / "bin" / "septet")

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "SEPTET_HOME": str(self.folder / "home" / "septet"),
            "LC_ALL": "C",
            **more,
        }

    def run(
        self, *arguments: str, before: tuple[str, ...] = (), stdin: str = "", **variables: str
    ) -> Outcome:
        """Run Septet, by way of the command `before`."""
        done = subprocess.run(
            [*before, self.septet, *arguments],
            cwd=self.folder / "home",
            env=self.environment(**variables),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=HOUR,
            check=False,
        )
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [""]
        return Outcome(
            "",
            self.python,
            done.returncode == 0,
            f"exit {done.returncode}: {last[0].replace(str(self.folder.parent), '…')[:160]}",
        )


def call(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def tool(name: str) -> str:
    """A program beside this Python, else on PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name) or name


def install(python: str, wheel: Path, folder: Path) -> Place:
    version = call(python, "-c", "import platform; print(platform.python_version())").strip()
    place = Place(version, folder / f"python {version} ü")
    (place.folder / "home").mkdir(parents=True)
    call(tool("uv"), "venv", "-q", "--python", python, place.folder / "venv")
    call(tool("uv"), "pip", "install", "-q", "--python", place.folder / "venv", wheel)
    return place


PLAIN_USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
HIDE = """
for program in /usr/bin/bwrap /usr/local/bin/bwrap; do
  test ! -e $program || mount --bind /dev/null $program
done
exec "$@"
"""
WITHOUT_BUBBLEWRAP = ("unshare", "--mount", "sh", "-c", HIDE, "sh")


def outcomes(place: Place) -> Iterator[Outcome]:
    """Try what people have trouble with."""
    home = place.folder / "home"
    yield place.run("version")._replace(what="version")
    yield place.run("doctor")._replace(what="doctor")
    yield place.run("demo", "clock", "-C", "my clöck", LC_ALL="C.UTF-8")._replace(
        what="demo in a folder with ö"
    )
    yield place.run("demo", "clock")._replace(what="demo with LC_ALL=C")
    yield place.run("demo", "bars", before=WITHOUT_BUBBLEWRAP)._replace(what="demo without bubblewrap")
    shutil.rmtree(home)
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    yield place.run("demo", "clock", before=PLAIN_USER)._replace(what="demo as a plain user")
    before = (*WITHOUT_BUBBLEWRAP, *PLAIN_USER)
    yield place.run("demo", "bars", before=before)._replace(what="the same without bubblewrap")
    yield from tls_outcomes(place)


def tls_outcomes(place: Place) -> Iterator[Outcome]:
    """A service whose certificate only SSL_CERT_FILE vouches for, as behind a proxy that opens TLS."""
    authority = trustme.CA()
    bundle = place.folder / "proxy ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with tls_service(authority) as address:
        login = partial(place.run, "login", "openai", stdin="sk-test-4711\n", OPENAI_BASE_URL=address)
        trusted = login(SSL_CERT_FILE=str(bundle))
        yield trusted._replace(
            what="TLS by SSL_CERT_FILE", well=trusted.well and "accepts it" in trusted.detail
        )
        refused = login()
        yield refused._replace(what="TLS refused without it", well="accepts it" not in refused.detail)


class Models(http.server.BaseHTTPRequestHandler):
    """Answers that there are no models, to whoever asks."""

    def do_GET(self) -> None:
        body = b'{"object": "list", "data": []}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the library's own name
        return


@contextmanager
def tls_service(authority: trustme.CA) -> Generator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = authority.issue_cert("localhost")
    with certificate.private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}/v1"
        server.shutdown()


def installed_by(folder: Path) -> Iterator[Outcome]:
    """The three installations of the README, from a checkout in a folder with a space and ü."""
    checkout = folder / "checkout ü"
    call("git", "clone", "-q", ROOT, checkout)
    home = {**os.environ, "HOME": str(folder / "tools"), "UV_TOOL_DIR": str(folder / "tools" / "uv")}
    home["UV_TOOL_BIN_DIR"] = home["PIPX_BIN_DIR"] = str(folder / "tools" / "bin")
    call(tool("uv"), "venv", "-q", "--seed", folder / "plain")
    call(tool("uv"), "pip", "install", "-q", "--python", folder / "plain", "pipx")
    commands = {
        "uv tool install .": ([tool("uv"), "tool", "install", "--force", "."], folder / "tools" / "bin"),
        "pipx install .": (
            [str(folder / "plain/bin/pipx"), "install", "--force", "."],
            folder / "tools" / "bin",
        ),
        "pip install .": ([str(folder / "plain/bin/pip"), "install", "-q", "."], folder / "plain" / "bin"),
    }
    for what, (command, programs) in commands.items():
        done = subprocess.run(command, cwd=checkout, env=home, capture_output=True, text=True, check=False)
        program = programs / "septet"
        told = (
            call(program, "version").strip()
            if done.returncode == 0
            else done.stderr[-200:].replace("\n", " ")
        )
        yield Outcome(what, sys.version.split()[0], told.startswith("septet "), told)
        program.unlink(missing_ok=True)


def main(pythons: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="septet wheels ü "))
    folder.chmod(0o755)
    call(tool("uv"), "build", "-q", "--wheel", "--out-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    found: list[Outcome] = []
    print(
        f"{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB\n\n| Python | what | | |\n|---|---|---|---|",
        flush=True,
    )
    tried = (outcomes(install(python, wheel, folder)) for python in pythons or [sys.executable])
    for outcome in (one for each in (*tried, installed_by(folder)) for one in each):
        found.append(outcome)
        print(
            f"| {outcome.python} | {outcome.what} | {'✓' if outcome.well else '✗'} | {outcome.detail} |",
            flush=True,
        )
    shutil.rmtree(folder)
    return 0 if all(outcome.well for outcome in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
