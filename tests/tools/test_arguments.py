"""Arguments of tool calls, as tools want them and as models write them."""

import re
from contextlib import suppress
from typing import Annotated

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.tools.arguments import decode_arguments
from septet.tools.editing import Replacement
from septet.tools.registry import schema_of


class EditForm(msgspec.Struct, forbid_unknown_fields=True):
    edits: Annotated[tuple[Replacement, ...], msgspec.Meta(min_length=1)]


class ReadForm(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    file: str = ""
    start: int = 1


EDITS = schema_of(EditForm)
ONE = EditForm(edits=(Replacement(path="a.py", old="x", new="y"),))


@pytest.mark.parametrize(
    "text",
    [
        '{"edits": [{"path": "a.py", "old": "x", "new": "y"}]}',
        '{"edits": {"path": "a.py", "old": "x", "new": "y"}}',
        '{"path": "a.py", "edits": [{"old": "x", "new": "y"}]}',
        '{"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}]}',
        '{"file_path": "a.py", "old_string": "x", "new_string": "y"}',
        '{"path": "a.py", "old_str": "x", "new": "y"}',
        '{"edits": "[{\\"path\\": \\"a.py\\", \\"old\\": \\"x\\", \\"new\\": \\"y\\"}]"}',
    ],
)
def test_an_edit_is_understood_in_the_forms_of_other_tools(text: str) -> None:
    assert decode_arguments(text, EditForm, EDITS) == ONE


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"edits": [{"path": "a.py", "old": "x"}]}', "missing required field `new` - at `$.edits[0]`"),
        (
            '{"edits": [{"old": "x", "new": "y"}], "path": "a.py", "old": "z"}',
            "missing required field `path` - at `$.edits[0]`",
        ),
        (
            '{"edits": [{"old": "x", "new": "y"}], "path": "a.py", "mode": "fast"}',
            "missing required field `path` - at `$.edits[0]`",
        ),
        ('{"edits": "[{"}', "Expected `array`, got `str`"),
        ('{"edits": []}', "Expected `array` of length >= 1"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", "missing required field `edits`"),
        ("", "missing required field `edits`"),
    ],
)
def test_what_is_not_plain_is_refused_with_the_first_fault(text: str, fault: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=re.escape(fault)):
        decode_arguments(text, EditForm, EDITS)


def test_a_name_of_the_schema_is_never_taken_for_another() -> None:
    schema = schema_of(ReadForm)
    assert decode_arguments('{"filename": "a.py", "start": "3"}', ReadForm, schema) == ReadForm(
        path="a.py", start=3
    )
    with pytest.raises(msgspec.ValidationError, match="missing required field `path`"):
        decode_arguments('{"file": "a.py"}', ReadForm, schema)
    with pytest.raises(msgspec.ValidationError, match="unknown field `filename`"):
        decode_arguments('{"path": "a.py", "filename": "b.py"}', ReadForm, schema)
    with pytest.raises(msgspec.ValidationError, match="unknown field `file_path`"):
        decode_arguments('{"file_path": "a.py", "filename": "b.py"}', ReadForm, schema)


def test_what_is_no_json_says_so() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_arguments("{", EditForm, EDITS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda one: (
        st.lists(one)
        | st.dictionaries(st.sampled_from(["path", "old", "new", "edits", "file_path", "x"]), one)
    ),
    max_leaves=12,
)


@given(value=JSON)
def test_anything_is_understood_or_refused(value: object) -> None:
    with suppress(msgspec.MsgspecError):
        assert decode_arguments(msgspec.json.encode(value).decode(), EditForm, EDITS).edits
