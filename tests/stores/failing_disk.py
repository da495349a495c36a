"""A process whose disk fails: it stores some events, then the kernel refuses every flush, and it tries again.

Prints `stored NUMBER` for each event that was acknowledged, and `failed CAUSE` for one that was not.
"""

import ctypes
import os
import platform
import struct
import sys
from pathlib import Path

import anyio

from septet.domain.events import PersonSpoke
from septet.errors import StoreFailed
from septet.stores.blobs import FolderBlobs
from septet.stores.sqlite import open_store

SECCOMP, FSYNC, FDATASYNC = {"x86_64": (317, 74, 75), "aarch64": (277, 82, 83)}[platform.machine()]
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EIO = 0x7FFF0000, 0x00050000 | 5
PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, ALL_THREADS = 38, 1, 1


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def refuse_to_flush() -> None:
    """From now on, fsync and fdatasync of every thread fail with an input/output error."""
    steps = [
        struct.pack("=HBBI", LOAD, 0, 0, 0),
        struct.pack("=HBBI", JUMP_EQUAL, 2, 0, FSYNC),
        struct.pack("=HBBI", JUMP_EQUAL, 1, 0, FDATASYNC),
        struct.pack("=HBBI", RETURN, 0, 0, ALLOW),
        struct.pack("=HBBI", RETURN, 0, 0, EIO),
    ]
    library = ctypes.CDLL(None, use_errno=True)
    program = Program(len(steps), b"".join(steps))
    failed = library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    failed = failed or library.syscall(SECCOMP, SET_MODE_FILTER, ALL_THREADS, ctypes.byref(program))
    if failed:
        sys.exit(f"the kernel takes no filter: {os.strerror(ctypes.get_errno())}")


def say(*words: object) -> None:
    os.write(1, " ".join(map(str, words)).encode() + b"\n")


async def main(folder: Path, before: int) -> None:
    async with open_store(folder / "log.db") as store:
        for number in range(before + 3):
            if number == before:
                refuse_to_flush()
            try:
                await store.append("chat", PersonSpoke(text=str(number)), after=None)
            except StoreFailed as error:
                say("failed", error.cause)
            else:
                say("stored", number)
        try:
            say("blob", await FolderBlobs(folder / "blobs").put(b"content"))
        except (StoreFailed, OSError) as error:
            say("failed", error)
        os._exit(9)  # as if it was killed: nothing is written behind this


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
