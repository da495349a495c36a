"""Which tests a change may affect, by the imports of a project on disk."""

from pathlib import Path

import pytest
from scenarios.folders.chats import fill

from septet.workspace.modules import affected_tests, modules_under_test, possible_imports

FILES = {
    "src/shop/__init__.py": "",
    "src/shop/price.py": "from .money import Money\n",
    "src/shop/money.py": "import decimal\n",
    "src/shop/stock.py": "",
    "src/shop/text.py": "from . import (\n    stock,\n)\n",
    "plain.py": "",
    "tests/test_price.py": "from shop.price import total\n",
    "tests/test_cart.py": "def test_cart():\n    from shop import price, text\n",
    "tests/test_stock.py": "import subprocess\n",
    "tests/test_other.py": "import json\n",
    "tests/web/conftest.py": "import plain\n",
    "tests/web/test_page.py": "import json\n",
}


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        (["src/shop/money.py"], ["tests/test_cart.py", "tests/test_price.py"]),
        (["src/shop/stock.py"], ["tests/test_cart.py", "tests/test_stock.py"]),
        (["src/shop/text.py"], ["tests/test_cart.py"]),
        (["src/shop/__init__.py"], ["tests/test_cart.py", "tests/test_price.py"]),
        (["plain.py"], ["tests/web/test_page.py"]),
        (["tests/web/conftest.py"], ["tests/web/test_page.py"]),
        (["tests/test_other.py", "README.md"], ["tests/test_other.py"]),
        (["README.md"], []),
    ],
)
def test_a_test_is_affected_by_what_it_imports_or_is_called_after(
    tmp_path: Path, changed: list[str], wanted: list[str]
) -> None:
    fill(tmp_path, FILES)
    assert affected_tests(tmp_path, FILES, changed) == tuple(wanted)


def test_names_of_imports() -> None:
    text = "import a, b.c as d\nfrom e.f import (\n    g,\n    h,\n)\nfrom .. import i\nfrom .j import k\n"
    assert possible_imports(text, "p.q") >= {"a", "b.c", "e.f", "e.f.g", "e.f.h", "p.i", "p.q.j", "p.q.j.k"}


def test_what_tests_import_is_their_program(tmp_path: Path) -> None:
    fill(tmp_path, FILES)
    assert set(modules_under_test(tmp_path, ["import plain\n"])) == {"plain.py"}
    program = {path for path in FILES if not path.startswith("tests/")}
    assert set(modules_under_test(tmp_path, ["import subprocess\n"])) == program
