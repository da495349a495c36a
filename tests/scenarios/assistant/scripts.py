"""Scripts for the proxy and the assistant, as files."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

Turn = Mapping[str, object]


def write(path: Path, *turns: Turn) -> str:
    path.write_bytes(msgspec.yaml.encode({"turns": list(turns)}))
    return f"scripted:{path}"


def says(role: str, text: str, expect: str = "") -> Turn:
    return {"role": role, "say": text, "expect": expect}


def calls(role: str, *wishes: tuple[str, Mapping[str, object]], expect: str = "") -> Turn:
    made = [{"name": name, "arguments": dict(arguments)} for name, arguments in wishes]
    return {"role": role, "calls": made, "expect": expect}


def send(message: str, recipient: str = "assistant") -> tuple[str, Mapping[str, object]]:
    return "SendMessage", {"recipient": recipient, "message": message}


def file(name: str, body: str) -> tuple[str, Mapping[str, object]]:
    return "File", {"reasoning": "it is needed", "file_name": name, "body": body}


def execute(name: str) -> tuple[str, Mapping[str, object]]:
    return "ExecutePyFile", {"file_name": name}
