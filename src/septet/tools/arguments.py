"""The arguments of a tool call: as the tool's schema has them or, where they do not fit, as models often write them.

Models that were trained on other tools say `file_path` for `path`, or put the path beside the list of edits. What is
meant is plain, so it is understood instead of costing another request.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from septet.common.values import Value

T = TypeVar("T")
Given = dict[str, object]

OTHER_NAMES = {
    "path": ("file_path", "filepath", "filename", "file"),
    "text": ("content", "contents", "file_text"),
    "old": ("old_string", "old_str", "old_text"),
    "new": ("new_string", "new_str", "new_text"),
    "pattern": ("query", "regex"),
    "command": ("cmd",),
}


class ObjectSchema(Value):
    """What JSON schemas of arguments have in common."""

    properties: Mapping[str, object] = {}
    required: tuple[str, ...] = ()


class ListSchema(Value):
    """What schemas of lists have in common."""

    items: ObjectSchema = ObjectSchema()


def decode_arguments(text: str, form: type[T], schema: Mapping[str, object]) -> T:
    """The arguments as the form has them. Raises msgspec's error about how they were written."""
    try:
        return msgspec.json.decode(text or "{}", type=form, strict=False)
    except msgspec.ValidationError as error:
        try:
            given = msgspec.json.decode(text, type=Given)
            return msgspec.convert(fit(given, msgspec.convert(schema, ObjectSchema)), form, strict=False)
        except msgspec.MsgspecError:
            raise error from None


def fit(given: Given, schema: ObjectSchema) -> Given:
    """The arguments under the names that the schema has for them, and those of a list's items in its items."""
    found = renamed(given, schema)
    for name, one in schema.properties.items():
        if isinstance(one, Mapping) and "items" in one:
            found = with_items(found, name, msgspec.convert(one, ListSchema).items, schema)
    return found


def renamed(given: Given, schema: ObjectSchema) -> Given:
    """What stands under one other name gets the schema's; of two it is not plain which one is meant."""
    found = dict(given)
    for name in schema.properties.keys() - given.keys():
        others = given.keys() & set(OTHER_NAMES.get(name, ())) - schema.properties.keys()
        if len(others) == 1:
            found[name] = found.pop(others.pop())
    return found


def with_items(given: Given, name: str, items: ObjectSchema, schema: ObjectSchema) -> Given:
    """What stands beside a list and belongs into each of its items is put there; without a list it is the only item."""
    beside = renamed({key: value for key, value in given.items() if key not in schema.properties}, items)
    entries = [renamed(one, items) for one in entries_of(given.get(name, {}))]
    if not beside.keys() <= items.properties.keys() or any(beside.keys() & one.keys() for one in entries):
        return given
    rest = {key: value for key, value in given.items() if key in schema.properties}
    return {**rest, name: [{**beside, **one} for one in entries]} if beside or name in given else given


def entries_of(value: object) -> list[Given]:
    """The items of a list, which may be written as JSON in a text, or be a single object."""
    if isinstance(value, str):
        return entries_of(msgspec.json.decode(value))
    return msgspec.convert([value] if isinstance(value, Mapping) else value, list[Given])
