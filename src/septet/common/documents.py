"""YAML files that people write, read into values; what is wrong with them is said with path and line."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from septet.errors import BadConfig

if TYPE_CHECKING:
    from yaml.nodes import Node

T = TypeVar("T")
LARGEST = 8 << 20
UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]+)`")
PLACE = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`")


def read_document(path: Path, form: type[T]) -> T:
    """The file's content as a value of that form."""
    return parse_document(read_text(path), form, str(path))


def read_text(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST:
            raise BadConfig(f"{path} has more than {LARGEST >> 20} MiB", "is it the right file?")
        return path.read_text(encoding="utf-8")
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
        raise BadConfig(f"{name}: YAML aliases are not read here", "write the value out")
    try:
        return msgspec.yaml.decode(text, type=form)
    except msgspec.ValidationError as error:
        raise validation_error(str(error), root, form, name) from error


def has_alias(root: "Node | None") -> bool:
    """A node that is reached twice: a few lines of aliases can stand for gigabytes."""
    seen: set[int] = set()
    waiting = [root] if root else []
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            return True
        seen.add(id(node))
        waiting += [inner for _, inner in children_of(node).values()]
    return False


def children_of(node: "Node | None") -> "dict[str, tuple[Node, Node]]":
    """What stands inside a node, by key or position: the node that names it and its value."""
    from yaml.nodes import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        return {str(key.value): (key, value) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return {str(place): (value, value) for place, value in enumerate(node.value)}
    return {}


def validation_error(message: str, root: "Node | None", form: type, name: str) -> BadConfig:
    """The library's words, with the line that they are about and the nearest right name."""
    found = PLACE.search(message)
    unknown = UNKNOWN.search(message)
    path = found["path"] if found else ""
    cause = PLACE.sub("", message)
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
    """`.members[0].name` as keys and positions."""
    return re.findall(r"[^.\[\]]+", path)


def line_of(node: "Node | None", path: list[str]) -> int:
    """The line of the place that a path names, as far down as it exists."""
    lines = [node.start_mark.line + 1 if node and node.start_mark else 1]
    for step in path:
        children = children_of(node)
        if step not in children:
            break
        head, node = children[step]
        lines.append(head.start_mark.line + 1 if head.start_mark else lines[-1])
    return lines[-1]


def known_names(form: type) -> list[str]:
    """All field names that a form and the forms inside it know."""
    parts = msgspec.json.schema(form).get("$defs", {})
    return [name for part in parts.values() for name in part.get("properties", {})]
