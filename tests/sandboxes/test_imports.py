"""What a program needs from others, and which distribution provides it: known, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.sandboxes.packages import distribution_of, third_party_imports


def test_what_a_program_can_do_without_is_not_wanted() -> None:
    source = (
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "try:\n    import pygame\nexcept ImportError:\n    print('pip install pygame')\n    raise SystemExit(1)\n"
        "try:\n    import rich\nexcept (ModuleNotFoundError, OSError):\n    import curious\nelse:\n    import yaml\n"
        "try:\n    import emoji\nexcept ValueError:\n    sys.exit(2)\n"
    )
    assert third_party_imports({"a.py": source}) == ("curious", "emoji", "pygame", "yaml")


def test_what_replaces_an_import_that_is_there_is_not_wanted() -> None:
    source = (
        "try:\n    from functools import lru_cache\nexcept ImportError:\n    from backports.x import lru_cache\n"
        "try:\n    import tomllib, ujson\nexcept ImportError:\n    import tomli\n    raise\n"
        "try:\n    import json\nfinally:\n    import emoji\n"
        "if TYPE_CHECKING:\n    import numpy\nelse:\n    import yaml\n"
    )
    assert third_party_imports({"a.py": source}) == ("emoji", "tomli", "ujson", "yaml")


def test_only_foreign_top_level_names_are_found() -> None:
    sources = {
        "main.py": "import os, sys, numpy.linalg as la\nfrom helpers import x\nfrom package.deep import y\n",
        "helpers.py": "def f():\n    import yaml\n    from PIL import Image\n",
        "package/deep/__init__.py": "from . import sibling\nfrom .other import z\nimport tkinter\n",
        "tests/test_main.py": "import pytest\nimport main\nfrom tests import tools\n",
        "broken.py": "import never (",
    }
    assert third_party_imports(sources, present=["pytest"]) == ("PIL", "numpy", "yaml")


@given(st.text())
def test_any_text_is_a_source(text: str) -> None:
    assert isinstance(third_party_imports({"a.py": text}), tuple)


@pytest.mark.parametrize(
    ("name", "distribution"),
    [("numpy", "numpy"), ("cv2", "opencv-python-headless"), ("yaml", "pyyaml"), ("sklearn", "scikit-learn")],
)
def test_a_known_name_has_its_distribution(name: str, distribution: str) -> None:
    assert distribution_of(name) == distribution


@pytest.mark.parametrize("name", ["requestss", "numpyy", "my_helpers", "", "google"])
def test_an_unknown_name_is_not_guessed(name: str) -> None:
    assert distribution_of(name) is None
