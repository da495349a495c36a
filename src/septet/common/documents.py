"""Reads YAML files that people write into values; errors name the path and the line."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from septet.errors import BadConfig

if TYPE_CHECKING:
    from yaml.nodes import Node

T = TypeVar("T")
MAX_BYTES = 8 << 20
UNKNOWN_FIELD = re.compile(r"unknown field `(?P<key>[^`]+)`")
ERROR_PATH = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`")


def read_document(path: Path, form: type[T]) -> T:
    """Read a file as a value of the given type."""
    return parse_document(read_text(path), form, str(path))


def read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadConfig(f"{path} has more than {MAX_BYTES >> 20} MiB", "is it the right file?")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadConfig(f"{path} cannot be read, there is no such file", "check the path") from error
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror}", "check the path") from error
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not UTF-8 text", "is it the right file?") from error


def parse_document(text: str, form: type[T], name: str) -> T:
    import yaml

    try:
        root = yaml.SafeLoader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadConfig(f"{name}:{line}: not valid YAML ({error.problem})", "fix that line") from error
    except yaml.YAMLError as error:
        raise BadConfig(f"{name}: not valid YAML ({error})", "is it the right file?") from error
    if has_alias(root):
        raise BadConfig(f"{name}: YAML aliases are not allowed", "write the value out")
    try:
        return msgspec.yaml.decode(text, type=form)
    except msgspec.ValidationError as error:
        raise validation_error(str(error), root, form, name) from error


def has_alias(root: "Node | None") -> bool:
    """Whether a node is reached twice: a few lines of aliases can expand to gigabytes."""
    seen: set[int] = set()
    queue = [root] if root else []
    while queue:
        node = queue.pop()
        if id(node) in seen:
            return True
        seen.add(id(node))
        queue += [inner for _, inner in children_of(node).values()]
    return False


def children_of(node: "Node | None") -> "dict[str, tuple[Node, Node]]":
    """The children of a node, by key or index: the node of the key and that of the value."""
    from yaml.nodes import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        return {str(key.value): (key, value) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return {str(index): (value, value) for index, value in enumerate(node.value)}
    return {}


KINDS = {
    "object": "keys with values",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}
"""What the library calls the kinds of values, and what a person calls them."""


def in_plain_words(cause: str) -> str:
    return re.sub(r"`([a-z]+)`", lambda found: KINDS.get(found[1], found[0]), cause)


def validation_error(message: str, root: "Node | None", form: type, name: str) -> BadConfig:
    """The library's message, with its line in the file and the closest valid name."""
    location = ERROR_PATH.search(message)
    unknown = UNKNOWN_FIELD.search(message)
    path = location["path"] if location else ""
    cause = in_plain_words(ERROR_PATH.sub("", message))
    if unknown:
        key = unknown["key"]
        line = line_of(root, [*steps(path), key])
        near = get_close_matches(key, known_names(form), n=1)
        remedy = f"did you mean '{near[0]}'?" if near else "remove it"
        return BadConfig(f"{name}:{line}: unknown key '{key}'", remedy)
    where = f" at {path.lstrip('.')}" if path else ""
    return BadConfig(
        f"{name}:{line_of(root, steps(path))}: {cause[0].lower()}{cause[1:]}{where}", "fix that value"
    )


def steps(path: str) -> list[str]:
    """Split `.members[0].name` into keys and indices."""
    return re.findall(r"[^.\[\]]+", path)


def line_of(node: "Node | None", path: list[str]) -> int:
    """The line of the node at a path, as far down as it exists."""
    lines = [node.start_mark.line + 1 if node and node.start_mark else 1]
    for step in path:
        children = children_of(node)
        if step not in children:
            break
        key, node = children[step]
        lines.append(key.start_mark.line + 1 if key.start_mark else lines[-1])
    return lines[-1]


def known_names(form: type) -> list[str]:
    """All field names of a type and the types inside it."""
    parts = msgspec.json.schema(form, schema_hook=lambda _: {"type": "object"}).get("$defs", {})
    return [name for part in parts.values() for name in part.get("properties", {})]
