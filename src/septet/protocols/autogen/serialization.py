"""Messages as bytes and back: by AutoGen's own serializers, and where those lose something, without loss.

AutoGen writes a subclass whole where a field says `SerializeAsAny`, but reads back the declared class, which may even
be abstract: its own distributed runtime cannot carry a group chat. Here each such place is written down with the class
that is there, and read back as that class. Only subclasses of the declared one count, whatever a message claims.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Union, cast, get_args, get_origin, get_type_hints

from autogen_core import (
    JSON_DATA_CONTENT_TYPE,
    PROTOBUF_DATA_CONTENT_TYPE,
    MessageSerializer,
    UnknownPayload,
    try_get_known_serializers_for_type,
)
from google.protobuf.message import Message
from pydantic import BaseModel, TypeAdapter

from septet.common.values import Value

Path = tuple[str | int, ...]
"""Where something is in a message: names of fields, keys, and indices."""
PLAIN = {"NoneType", "bool", "int", "float", "str", "list", "dict"}
"""Types of answers that JSON has itself."""


class Variant(Value):
    """The class of what is in a place where the message's type says less."""

    path: Path
    schema: str


class Payload(Value):
    """A message as bytes: the name of its type, what the bytes are, and its class among those of that name."""

    type: str
    content_type: str
    data: bytes
    schema: str = ""
    variants: tuple[Variant, ...] = ()


class AdapterSerializer:
    """Serializes dataclasses that AutoGen's own serializer refuses: nested ones, and those with unions."""

    data_content_type = JSON_DATA_CONTENT_TYPE

    def __init__(self, cls: type[object]) -> None:
        self.cls = cls
        self.type_name = cls.__name__

    def deserialize(self, payload: bytes) -> object:
        return adapter(self.cls).validate_json(payload)

    def serialize(self, message: object) -> bytes:
        return adapter(self.cls).dump_json(message)


class Serializers:
    """The types of messages that a runtime knows. Several classes may have one name."""

    def __init__(self, preferred: str = JSON_DATA_CONTENT_TYPE) -> None:
        self._contents = sorted(
            (JSON_DATA_CONTENT_TYPE, PROTOBUF_DATA_CONTENT_TYPE), key=lambda one: one != preferred
        )
        self._known: dict[tuple[str, str], dict[str, MessageSerializer[object]]] = {}

    def add(self, serializer: MessageSerializer[object] | Sequence[MessageSerializer[object]]) -> None:
        for one in serializer if isinstance(serializer, Sequence) else (serializer,):
            classes = self._known.setdefault((one.type_name, one.data_content_type), {})
            schema = schema_name(getattr(one, "cls", None))
            classes.pop(schema, None)
            classes[schema] = one  # the last one is taken where a message does not say which

    def knows(self, type_name: str) -> bool:
        return any((type_name, content) in self._known for content in self._contents)

    def encode(self, message: object) -> Payload:
        """Raises ValueError for what cannot be sent."""
        name, schema = type_name(message), schema_name(type(message))
        serializer = self._find(name, schema) or self._find_new(type(message), name, schema)
        if serializer is None:
            if name not in PLAIN:
                raise ValueError(f"Unknown type {name}: add a serializer with add_message_serializer")
            data = json.dumps(message, allow_nan=False).encode()
            return Payload(type=name, content_type=JSON_DATA_CONTENT_TYPE, data=data)
        return Payload(
            type=name,
            content_type=serializer.data_content_type,
            data=serializer.serialize(message),
            schema=schema,
            variants=tuple(variants(message)) if open_classes(type(message)) else (),
        )

    def decode(self, payload: Payload) -> object:
        """Raises ValueError for bytes that are no such message; a type that nobody has added is UnknownPayload."""
        known = self._known.get((payload.type, payload.content_type), {})
        serializer = known.get(payload.schema) or next(reversed(known.values()), None)
        if serializer is None:
            if payload.type in PLAIN and payload.content_type == JSON_DATA_CONTENT_TYPE:
                return json.loads(payload.data)
            return UnknownPayload(payload.type, payload.content_type, payload.data)
        if payload.variants and isinstance(cls := getattr(serializer, "cls", None), type):
            return decode_variants(cast(type[object], cls), payload)
        return serializer.deserialize(payload.data)

    def _find(self, name: str, schema: str) -> MessageSerializer[object] | None:
        for content in self._contents:
            known = self._known.get((name, content), {})
            if (found := known.get(schema) or known.get("")) is not None:
                return found
        return None

    def _find_new(self, cls: type[object], name: str, schema: str) -> MessageSerializer[object] | None:
        """A type that is only sent from here need not be added."""
        try:
            self.add(try_get_known_serializers_for_type(cls))
        except ValueError:
            self.add(AdapterSerializer(cls))
        return self._find(name, schema)


def type_name(message: object) -> str:
    return message.DESCRIPTOR.full_name if isinstance(message, Message) else type(message).__name__


@cache
def schema_name(cls: type[object] | None) -> str:
    """The full name of a class; of a generic one with its arguments."""
    if cls is None:
        return ""
    if issubclass(cls, BaseModel) and (arguments := cls.__pydantic_generic_metadata__["args"]):
        inner = ",".join(schema_name(one) if isinstance(one, type) else str(one) for one in arguments)
        return f"{cls.__module__}:{cls.__qualname__}[{inner}]"
    return f"{cls.__module__}:{cls.__qualname__}"


@cache
def adapter(cls: type[object]) -> TypeAdapter[object]:
    return TypeAdapter(cls)


def is_open(hint: object) -> bool:
    """Whether a hint is `SerializeAsAny[...]`."""
    return any(type(one).__name__ == "SerializeAsAny" for one in getattr(hint, "__metadata__", ()))


@cache
def field_hints(cls: type[object]) -> Mapping[str, object]:
    """The fields of a pydantic model or a dataclass, with their types."""
    if issubclass(cls, BaseModel):
        fields = cls.model_fields.items()
        return {
            name: Annotated[(one.annotation, *one.metadata)] if one.metadata else one.annotation
            for name, one in fields
        }
    return get_type_hints(cls, include_extras=True) if is_dataclass(cls) else {}


@cache
def open_classes(cls: type[object]) -> frozenset[type[object]]:
    """The classes whose subclasses may be somewhere in a message of this class."""
    found: set[type[object]] = set()
    seen: set[type[object]] = set()
    waiting = [cls]
    while waiting:
        seen.add(current := waiting.pop())
        for hint in field_hints(current).values():
            for inside, is_any in classes_of(hint):
                found |= {inside} if is_any else set()
                waiting += [inside] if inside not in seen else []
    return frozenset(found)


def classes_of(hint: object, is_any: bool = False) -> Iterator[tuple[type[object], bool]]:
    is_any = is_any or is_open(hint)
    if isinstance(hint, type):
        kind = cast(type[object], hint)
        if issubclass(kind, BaseModel) or is_dataclass(kind):
            yield kind, is_any
    for inside in get_args(hint):
        yield from classes_of(inside, is_any)


def variants(value: object, hint: object = None, path: Path = ()) -> Iterator[Variant]:
    """The places in a message where a subclass of what its type says is written whole."""
    is_any = is_open(hint)
    declared = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(declared) in (Union, UnionType):
        arms = get_args(declared)
        arm = next((one for one in arms if is_open(one) and isinstance(value, BaseModel)), None)
        if arm is not None or not is_any:
            yield from variants(value, arm or next((one for one in arms if accepts(one, value)), None), path)
            return
    if is_any and type(value) is not declared and field_hints(type(value)):
        yield Variant(path=path, schema=schema_name(type(value)))
    for step, inside, inside_hint in children(value, declared):
        yield from variants(inside, inside_hint, (*path, step))


def accepts(hint: object, value: object) -> bool:
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and isinstance(value, origin) and not isinstance(value, str)


def children(value: object, hint: object) -> Iterable[tuple[str | int, object, object]]:
    """What is directly inside, with its place and its type."""
    arguments = get_args(hint)
    if isinstance(value, Mapping):
        items = cast(Mapping[object, object], value).items()
        return [(str(key), one, arguments[1] if len(arguments) > 1 else None) for key, one in items]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        entries = enumerate(cast(Sequence[object], value))
        return [(index, one, arguments[0] if arguments else None) for index, one in entries]
    hints = field_hints(type(value)).items()
    return [(name, getattr(value, name), inside) for name, inside in hints if may_hold(inside)]


@cache
def may_hold(hint: object) -> bool:
    """Whether there may be a subclass somewhere inside."""
    return any(is_any or open_classes(inside) for inside, is_any in classes_of(hint))


def decode_variants(cls: type[object], payload: Payload) -> object:
    content: object = json.loads(payload.data)
    bases = set(open_classes(cls))
    found: list[tuple[Path, type[object]]] = []
    for variant in sorted(payload.variants, key=lambda one: len(one.path)):
        inside = find_subclass(variant.schema, bases)
        bases |= open_classes(inside)
        found.append((variant.path, inside))
    for path, inside in reversed(found):
        holder = descend(content, path[:-1])
        place(holder, path[-1], adapter(inside).validate_python(descend(holder, path[-1:])))
    return adapter(cls).validate_python(content)


def find_subclass(schema: str, bases: Iterable[type[object]]) -> type[object]:
    waiting = list(bases)
    found: type[object] | None = None
    while waiting:
        current = waiting.pop()
        found = current if schema_name(current) == schema else found
        waiting += current.__subclasses__()
    if found is None:
        raise ValueError(f"{schema} is not among the classes that the message may hold")
    return found


def descend(content: object, path: Path) -> object:
    for step in path:
        match content, step:
            case dict(), str():
                content = cast(dict[str, object], content)[step]
            case list(), int():
                content = cast(list[object], content)[step]
            case _:
                raise ValueError(f"there is no {step} in the message")
    return content


def place(holder: object, step: str | int, value: object) -> None:
    match holder, step:
        case dict(), str():
            cast(dict[str, object], holder)[step] = value
        case list(), int():
            cast(list[object], holder)[step] = value
        case _:
            raise ValueError(f"there is no {step} in the message")
