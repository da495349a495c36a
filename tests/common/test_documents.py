"""Files that people write: mistakes are named with path, line and the nearest right name."""

from pathlib import Path

import pytest

from septet.common.documents import parse_document, read_document
from septet.common.values import Value
from septet.errors import BadConfig


class Part(Value, forbid_unknown_fields=True):
    name: str
    size: int = 0


class Whole(Value, forbid_unknown_fields=True):
    parts: tuple[Part, ...]
    title: str = ""


GOOD = "title: x\nparts:\n- name: a\n  size: 3\n"


def test_a_good_file_is_a_value() -> None:
    assert parse_document(GOOD, Whole, "f") == Whole(title="x", parts=(Part(name="a", size=3),))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("parts:\n- name: a\n  szie: 3\n", "f.yaml:3: unknown key 'szie': did you mean 'size'?"),
        ("titel: x\nparts: []\n", "f.yaml:1: unknown key 'titel': did you mean 'title'?"),
        (
            "parts:\n- name: a\n- name: b\n  size: big\n",
            "f.yaml:4: expected a whole number, got text at parts[1].size",
        ),
        ("parts:\n- size: 3\n", "f.yaml:2: object missing required field `name` at parts[0]"),
        ("parts: [\n", "f.yaml:2: not valid YAML"),
        ("a: &x [1]\nparts: *x\n", "f.yaml: YAML aliases are not allowed"),
        ("", "f.yaml:1: expected keys with values, got nothing"),
        ("\x00", "f.yaml: not valid YAML"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, complaint: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse_document(text, Whole, "f.yaml")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read"):
        read_document(tmp_path / "absent.yaml", Whole)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadConfig, match="not UTF-8"):
        read_document(tmp_path / "binary.yaml", Whole)
