"""What is special about blobs in a folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from septet.errors import LogDamaged, StoreFailed
from septet.stores.blobs import FolderBlobs, delete_unused_blobs, write_atomically

pytestmark = pytest.mark.anyio


def everything(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


def files(folder: Path) -> list[Path]:
    return [path for path in everything(folder) if path.is_file()]


async def test_a_content_is_one_file_and_no_other_is_left(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)

    address = await blobs.put(b"content")
    await blobs.put(b"content")

    assert files(tmp_path) == [tmp_path / address[:2] / address[2:]]


async def test_reading_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(LogDamaged):
        await FolderBlobs(tmp_path / "blobs").get("0" * 64)

    assert everything(tmp_path) == []


async def test_a_changed_file_is_found_out_and_mended_by_putting_it_again(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    address = await blobs.put(b"content")
    files(tmp_path)[0].write_bytes(b"c0ntent")

    with pytest.raises(LogDamaged, match="does not match"):
        await blobs.get(address)

    assert await blobs.put(b"content") == address
    assert await blobs.get(address) == b"content"


async def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreFailed, match="cannot be written"):
        await FolderBlobs(tmp_path / "file").put(b"content")


async def test_a_full_disk_leaves_no_half_file(small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("size=64k")

    with pytest.raises(StoreFailed, match="No space left"):
        await FolderBlobs(folder).put(b"x" * 100_000)

    assert files(folder) == []


async def test_nothing_is_swept_while_somebody_may_name_a_new_content(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    await blobs.put(b"about to be named")
    assert delete_unused_blobs(tmp_path, set) is None
    assert len(files(tmp_path)) == 1
    blobs.close()
    assert delete_unused_blobs(tmp_path, set) == len(b"about to be named")
    assert files(tmp_path) == []
    await blobs.put(b"about to be named")
    assert len(files(tmp_path)) == 1
    blobs.close()


async def test_what_is_used_stays(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path)
    used, _ = await blobs.put(b"used"), await blobs.put(b"unused")
    blobs.close()
    assert delete_unused_blobs(tmp_path, lambda: {used}) == len(b"unused")
    assert await blobs.get(used) == b"used"
    assert delete_unused_blobs(tmp_path / "none", set) == 0


async def test_only_the_owner_reads_them_and_their_folders_are_made(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        blobs = FolderBlobs(tmp_path / "deep" / "blobs")
        address = await blobs.put(b"content")
        write_atomically(tmp_path / "deep" / "new" / "file", b"x")
        write_atomically(tmp_path / "deep" / "new" / "file", b"y")
    finally:
        os.umask(before)
    file = tmp_path / "deep" / "blobs" / address[:2] / address[2:]
    modes = [path.stat().st_mode & 0o777 for path in (file, file.parent, tmp_path / "deep" / "new")]
    assert modes == [0o600, 0o700, 0o700]
    assert (tmp_path / "deep" / "new" / "file").read_bytes() == b"y"


@pytest.mark.parametrize("address", ["", "a" * 63, "a" * 65, "g" * 64, "A" * 64, "../" + "a" * 61])
async def test_what_is_no_address_is_never_a_path(tmp_path: Path, address: str) -> None:
    blobs = FolderBlobs(tmp_path / "blobs")
    with pytest.raises(LogDamaged, match="is not the address of a blob"):
        await blobs.get(address)


def test_a_file_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder" / "file").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder" / "file", b"x")
    assert everything(tmp_path / "folder") == [tmp_path / "folder" / "file"]
