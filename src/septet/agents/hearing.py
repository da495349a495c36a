"""All that a run says, kept whole where the log has only its beginning and its end."""

from typing import Literal

from msgspec.structs import replace

from septet.domain.runs import Limits, RunResult
from septet.ports import Blobs

Stream = Literal["stdout", "stderr"]


class Hearing:
    """What came over each stream, of which no more than its limit is kept."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.streams: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def hear(self, stream: Stream, piece: bytes) -> None:
        kept = self.streams[stream]
        kept += piece[: max(0, self.limits.output - len(kept))]

    async def kept(self, result: RunResult, blobs: Blobs) -> RunResult:
        """The result with the addresses of what it does not tell whole."""
        return replace(
            result,
            stdout_blob=await self._blob("stdout", blobs),
            stderr_blob=await self._blob("stderr", blobs),
        )

    async def _blob(self, stream: Stream, blobs: Blobs) -> str:
        content = self.streams[stream]
        return await blobs.put(bytes(content)) if len(content) > self.limits.kept_output else ""
