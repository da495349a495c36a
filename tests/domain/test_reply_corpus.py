"""A corpus of model replies: what they were meant to say, or the reason why they cannot be used."""

import pytest

from septet.domain.plans import Refusal
from septet.domain.replies import code_files

P = "print(1)\n"
DOC = '"""Use:\n\n```\nrun me\n```\n"""\nx = 1\n'
DOC_PY = '"""Use:\n\n```python\nrun()\n```\n"""\nx = 1\n'
TICKS = 'text = "```"\nprint(text)\n'
MD = "# Title\n\n```bash\nls\n```\n\nend\n"
A, B = "a = 1\n", "b = 1\n"
DIFF = "```diff\n--- a/main.py\n+++ b/main.py\n@@ -1 +1 @@\n-print(0)\n+print(1)\n```"
EDIT = "<<<<<<< SEARCH\nprint(0)\n=======\nprint(1)\n>>>>>>> REPLACE\n"
SECOND = "<<<<<<< SEARCH\nlast = 9\n=======\n>>>>>>> REPLACE\n"
MAKE = "all:\n\tpython main.py\n"
BEFORE = {"main.py": "import sys\nprint(0)\nx = 1\nx = 1\nlast = 9\n"}
AFTER = "import sys\nprint(1)\nx = 1\nx = 1\nlast = 9\n"
TOTAL = "import os\n\n\ndef total(prices):\n    return sum(prices[1:])\n\n\n"
SHOP = f"{TOTAL}class Shop:\n    @cache\n    def add(self, one): pass\n"
METHOD = "    @final\n    def add(self, one):\n        self.all += [one]"
BEFORE["shop.py"] = SHOP
BEFORE["run.py"] = "x = 1\n\nif __name__ == '__main__':\n    print(x)\n"
QUOTED = f'text = """\n{EDIT}"""\n'

ONE = {
    "py": "```py\nprint(1)\n```",
    "python": "```python\nprint(1)\n```",
    "Python": "```Python\nprint(1)\n```",
    "PYTHON": "```PYTHON\nprint(1)\n```",
    "python3": "```python3\nprint(1)\n```",
    "bare": "```\nprint(1)\n```",
    "tilde": "~~~\nprint(1)\n~~~",
    "tilde python": "~~~python\nprint(1)\n~~~",
    "four ticks": "````python\nprint(1)\n````",
    "five tildes": "~~~~~python\nprint(1)\n~~~~~",
    "longer closing": "```python\nprint(1)\n`````",
    "space before info": "``` python\nprint(1)\n```",
    "trailing spaces": "```python   \nprint(1)\n```   ",
    "indented fence": "  ```python\nprint(1)\n  ```",
    "list item": "1. Code:\n   ```python\nprint(1)\n   ```",
    "prose before": "Sure! Here is the program.\n\n```python\nprint(1)\n```",
    "prose after": "```python\nprint(1)\n```\nHope this helps!",
    "prose around": "Intro.\n```python\nprint(1)\n```\nOutro with `inline` code.",
    "inline ticks in prose": "Use `print` and ``x`` here:\n```python\nprint(1)\n```",
    "crlf": "```python\r\nprint(1)\r\n```\r\n",
    "old mac": "```python\rprint(1)\r```\r",
    "blank lines inside": "```python\n\nprint(1)\n\n\n```",
    "output block beside": "```python\nprint(1)\n```\nprints\n```text\n1\n```",
    "shell beside": "```bash\npip install x\n```\n```python\nprint(1)\n```",
    "console beside": "```python\nprint(1)\n```\n```console\n$ python main.py\n1\n```",
    "attributes": "```python {.line-numbers}\nprint(1)\n```",
    "pandoc": "```{.python}\nprint(1)\n```",
    "heading then code": "# The program\n\n```python\nprint(1)\n```",
    "thinking first": "<think>```maybe```</think>\n\n```python\nprint(1)\n```",
    "quote in prose": "> a remark\n\n```python\nprint(1)\n```",
    "no newline at the end": "```python\nprint(1)\n```",
    "a flag": "```python copy\nprint(1)\n```",
    "a heading that names no file": "# With numpy.random\n```python\nprint(1)\n```",
    "unicode prose": "Voilà — 代码\n```python\nprint(1)\n```",
    "bom": "\ufeff```python\nprint(1)\n```",
    "pycon is not code": "```python\nprint(1)\n```\n```pycon\n>>> 1\n```",
}

NAMED = {
    "info": ("```python tool.py\nprint(1)\n```", {"tool.py": P}),
    "info colon": ("```python:tool.py\nprint(1)\n```", {"tool.py": P}),
    "info file=": ("```python file=tool.py\nprint(1)\n```", {"tool.py": P}),
    "info quoted": ('```python title="src/tool.py"\nprint(1)\n```', {"src/tool.py": P}),
    "info filename=": ("```py filename=tool.py\nprint(1)\n```", {"tool.py": P}),
    "only the name": ("```tool.py\nprint(1)\n```", {"tool.py": P}),
    "bold before": ("**tool.py**\n```python\nprint(1)\n```", {"tool.py": P}),
    "bold with colon": ("**tool.py:**\n\n```python\nprint(1)\n```", {"tool.py": P}),
    "heading before": ("### tool.py\n```python\nprint(1)\n```", {"tool.py": P}),
    "heading ticks": ("#### `pkg/tool.py`\n\n```python\nprint(1)\n```", {"pkg/tool.py": P}),
    "file: before": ("File: tool.py\n```python\nprint(1)\n```", {"tool.py": P}),
    "filename: before": ("Filename: `tool.py`\n```python\nprint(1)\n```", {"tool.py": P}),
    "comment inside": ("```python\n# file: tool.py\nprint(1)\n```", {"tool.py": "# file: tool.py\n" + P}),
    "two files": (
        "```python a.py\na = 1\n```\n```python b.py\nb = 1\n```",
        {"a.py": A, "b.py": B},
    ),
    "two named before": (
        "a.py\n```python\na = 1\n```\n\nb.py\n```python\nb = 1\n```",
        {"a.py": A, "b.py": B},
    ),
    "other language named": (
        "```csv data.csv\na,b\n```\n```python a.py\na = 1\n```",
        {"data.csv": "a,b\n", "a.py": A},
    ),
    "markdown nests": (
        f"```markdown README.md\n{MD}```\n```python a.py\na = 1\n```",
        {"README.md": MD, "a.py": A},
    ),
    "longer fence nests": (f"````markdown README.md\n{MD}````", {"README.md": MD}),
    "docstring with info": (f"```python a.py\n{DOC_PY}```", {"a.py": DOC_PY}),
    "docstring with bare fence": (f"```python a.py\n{DOC}```", {"a.py": DOC}),
    "ticks in a string": (f"```python a.py\n{TICKS}```", {"a.py": TICKS}),
    "tildes around ticks": (f"~~~python a.py\n{DOC}~~~", {"a.py": DOC}),
    "indented code kept": ("```python a.py\nif 1:\n    x = 1\n```", {"a.py": "if 1:\n    x = 1\n"}),
    "tabs kept": ("```python a.py\nif 1:\n\tx = 1\n```", {"a.py": "if 1:\n\tx = 1\n"}),
    "shell and output beside named ones": (
        "```python a.py\na = 1\n```\nRun:\n```bash\npython a.py\n```\nIt prints\n```\n1, 2\n```",
        {"a.py": A},
    ),
    "Makefile": (f"```makefile Makefile\n{MAKE}```", {"Makefile": MAKE}),
    "Makefile by its language": (f"```makefile\n{MAKE}```", {"Makefile": MAKE}),
    "Makefile alone": (f"```Makefile\n{MAKE}```", {"Makefile": MAKE}),
    "Dockerfile before": ("**Dockerfile**\n```\nFROM python\n```", {"Dockerfile": "FROM python\n"}),
    "LICENSE": ("```text LICENSE\nMIT\n```", {"LICENSE": "MIT\n"}),
    "LICENSE before": ("`LICENSE`:\n```text\nMIT\n```", {"LICENSE": "MIT\n"}),
    "gitignore": ("```gitignore .gitignore\n*.pyc\n```", {".gitignore": "*.pyc\n"}),
    "gitignore alone": ("```.gitignore\n*.pyc\n```", {".gitignore": "*.pyc\n"}),
    "gitignore before": ("### .gitignore\n```\n*.pyc\n```", {".gitignore": "*.pyc\n"}),
    "hidden folder": (
        "```yaml .github/workflows/ci.yml\non: push\n```",
        {".github/workflows/ci.yml": "on: push\n"},
    ),
    "spaces in quotes": ('```python file="my file.py"\nprint(1)\n```', {"my file.py": P}),
    "spaces in ticks before": ("`my file.py`\n```python\nprint(1)\n```", {"my file.py": P}),
    "a name without an ending": ("```sh file=run\n#!/bin/sh\n```", {"run": "#!/bin/sh\n"}),
    "a label before": ("File: run\n```sh\n#!/bin/sh\n```", {"run": "#!/bin/sh\n"}),
    "from here": ("```python ./tool.py\nprint(1)\n```", {"tool.py": P}),
    "numbered heading": ("1. **tool.py**\n```python\nprint(1)\n```", {"tool.py": P}),
    "comment without a label": ("```python\n# tool.py\nprint(1)\n```", {"tool.py": "# tool.py\n" + P}),
    "slashes": (
        "```javascript\n// web/app.js\nlet a\n```",
        {"web/app.js": "// web/app.js\nlet a\n"},
    ),
    "words after the name": ("```python tool.py (new)\nprint(1)\n```", {"tool.py": P}),
    "indented block": ("  ```python a.py\n  if 1:\n      x = 1\n  ```", {"a.py": "if 1:\n    x = 1\n"}),
    "block in a list": (
        "- a\n\n    ```python a.py\n    if 1:\n        x = 1\n\n    ```",
        {"a.py": "if 1:\n    x = 1\n"},
    ),
    "block behind a tab": ("\t```python a.py\n\tif 1:\n\t\tx = 1\n\t```", {"a.py": "if 1:\n\tx = 1\n"}),
    "less indented than its fence": ("   ```python a.py\n a = 1\n   ```", {"a.py": A}),
    "diff": (DIFF, {"main.py": AFTER}),
    "diff with a name": (DIFF.replace("```diff", "```diff main.py"), {"main.py": AFTER}),
    "diff in a python block": (DIFF.replace("```diff", "```python main.py"), {"main.py": AFTER}),
    "diff with a bare mark": (DIFF.replace("@@ -1 +1 @@", "@@"), {"main.py": AFTER}),
    "git diff": (
        DIFF.replace("--- a", "diff --git a/main.py b/main.py\nindex 1..2 100644\n--- a"),
        {"main.py": AFTER},
    ),
    "hunks alone": (
        "```diff main.py\n@@ -1,2 +1,2 @@\n import sys\n-print(0)\n+print(1)\n@@ ... @@\n x = 1\n-last = 9\n```",
        {"main.py": AFTER.replace("last = 9\n", "")},
    ),
    "diff of a new file": (
        "```diff\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+a = 1\n```",
        {"a.py": A},
    ),
    "the line number chooses": (
        "```diff main.py\n@@ -4 +4 @@\n-x = 1\n+x = 2\n```",
        {"main.py": BEFORE["main.py"].replace("x = 1\nlast", "x = 2\nlast")},
    ),
    "search and replace": (f"```python main.py\n{EDIT}```", {"main.py": AFTER}),
    "named inside": (f"```\nmain.py\n{EDIT}```", {"main.py": AFTER}),
    "named before": (f"main.py\n```python\n{EDIT}```", {"main.py": AFTER}),
    "two edits in a block": (
        f"```python main.py\n{EDIT}{SECOND}```",
        {"main.py": AFTER.replace("last = 9\n", "")},
    ),
    "an edit after the other": (
        f"```python main.py\n{EDIT}```\n```python main.py\n{SECOND}```",
        {"main.py": AFTER.replace("last = 9\n", "")},
    ),
    "one function": (
        "```python shop.py::total\ndef total(prices):\n    return sum(prices)\n```",
        {"shop.py": SHOP.replace("sum(prices[1:])", "sum(prices)")},
    ),
    "one method, indented or not": (
        "### `shop.py::Shop.add`\n```python\n@final\ndef add(self, one):\n    self.all += [one]\n```",
        {"shop.py": SHOP.replace("    @cache\n    def add(self, one): pass", METHOD)},
    ),
    "two functions of a file": (
        f"```python shop.py::total\ndef total(p):\n    return sum(p)\n```\n```python shop.py::Shop.add\n{METHOD}\n```",
        {
            "shop.py": SHOP.replace("    @cache\n    def add(self, one): pass", METHOD)
            .replace("total(prices)", "total(p)")
            .replace("sum(prices[1:])", "sum(p)")
        },
    ),
    "a new function before what starts the program": (
        "```python run.py::tax\ndef tax(): pass\n```",
        {"run.py": "x = 1\n\n\ndef tax(): pass\n\n\nif __name__ == '__main__':\n    print(x)\n"},
    ),
    "a new function at the end": (
        "```python shop.py::tax\ndef tax(): pass\n```",
        {"shop.py": f"{SHOP}\n\ndef tax(): pass\n"},
    ),
    "a new method at the end of its class": (
        "```python shop.py::Shop.clear\ndef clear(self):\n    self.all = []\n```",
        {"shop.py": f"{SHOP}\n    def clear(self):\n        self.all = []\n"},
    ),
    "a diff of two files": (
        f"{DIFF[:-3]}diff --git a/b.py b/b.py\n--- /dev/null\n+++ b/b.py\n@@ -0,0 +1 @@\n+b = 1\n```",
        {"main.py": AFTER, "b.py": B},
    ),
    "a patch as a file": (f"```diff fix.patch\n{DIFF[8:-3]}```", {"fix.patch": DIFF[8:-3]}),
    "markers in a string": (f"```python a.py\n{QUOTED}```", {"a.py": QUOTED}),
}

REFUSED = {
    "nothing": ("I have fixed the bug.", "no code block"),
    "empty": ("", "no code block"),
    "inline only": ("Use `print(1)`.", "no code block"),
    "two unnamed": ("```python\na\n```\nand\n```python\nb\n```", "2 code blocks without a file name"),
    "wrong language": ("```javascript\nlet a\n```", "1 code block without a file name ('let a')"),
    "only words": ("```bash\nls\n```", "no code block"),
    "unnamed beside named": (
        "```python a.py\na = 1\n```\nRun:\n```python\nimport a\n```",
        "1 code block without a file name ('import a')",
    ),
    "bare code beside named": (
        "```python a.py\na = 1\n```\n```\nimport a\na.b = 2\n```",
        "1 code block without a file name ('import a')",
    ),
    "data beside named": (
        '```python a.py\na = 1\n```\n```json\n{"a": 1}\n```',
        """1 code block without a file name ('{"a": 1}')""",
    ),
    "data beside the only one": ('```python\nprint(1)\n```\n```json\n{"a": 1}\n```', "without a file name"),
    "spaces without quotes": ("```python my file.py\nprint(1)\n```", "'my file.py'"),
    "a name without an ending": ("```sh run\n#!/bin/sh\nls\n```", "'run' does not say which file"),
    "spaces and no language": ("```my file.py\nprint(1)\n```", "'my file.py'"),
    "a block around all": (
        "```\n```python a.py\na = 1\n```\n```\n```python b.py\nb = 1\n```",
        "without a file name",
    ),
    "two names": ("```python a.py b.py\nprint(1)\n```", "'a.py b.py'"),
    "diff without a name": ("```diff\n@@ -1 +1 @@\n-print(0)\n+print(1)\n```", "names no file"),
    "diff that does not fit": (
        DIFF.replace("-print(0)", "-print(7)"),
        "'main.py': these lines are not there",
    ),
    "diff of no file": (
        DIFF.replace("main.py", "other.py"),
        "'other.py' is not among the files that you have seen",
    ),
    "diff of two files": (
        f"{DIFF[:-3]}--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-1\n+2\n```",
        "'b.py' is not among the files that you have seen",
    ),
    "diff without hunks": ("```diff main.py\n-print(0)\n+print(1)\n```", "no line that begins with @@"),
    "diff that deletes": (
        "```diff\n--- a/main.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import sys\n```",
        "files cannot be deleted",
    ),
    "search that does not fit": (
        f"```python main.py\n{EDIT.replace('0', '7')}```",
        "these lines are not there",
    ),
    "search in two places": (
        "```python main.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```",
        "these lines are there 2 times",
    ),
    "search without an end": (
        f"```python main.py\n{EDIT.partition('>>>')[0]}```",
        "no line '>>>>>>> REPLACE'",
    ),
    "words among edits": (f"```python main.py\n{EDIT}print(2)\n```", "'print(2)' stands outside"),
    "an edit of a file that comes whole": (
        f"```python main.py\nprint(0)\n```\n```python main.py\n{EDIT}```",
        "comes twice",
    ),
    "a method of a class that is not there": (
        "```python shop.py::Till.add\ndef add(self): pass\n```",
        "'shop.py' has no 'Till'; its definitions are total, Shop, Shop.add",
    ),
    "a function of another name": (
        "```python shop.py::total\ndef tax(): pass\n```",
        "the block must hold 'total' whole",
    ),
    "a function with more around": (
        "```python shop.py::total\nimport re\ndef total(): pass\n```",
        "only the definition can be replaced",
    ),
    "a function of no file": (
        "```python a.py::f\ndef f(): pass\n```",
        "'a.py' is not among the files that you have seen",
    ),
    "a block that swallows another": (
        "```yaml a.yml\non: push\n```yaml b.yml\non: pull\n```\n```",
        "'a.yml' holds the block '```yaml b.yml'",
    ),
    "all that is wrong at once": (
        "```python a.py\n1\n```\n```python a.py\n2\n```\n```python my file.py\n3\n```\n```js\nlet a\n```",
        "('let a')",
    ),
    "an unclosed one and those after it": (
        "```python a.py\na = 1\n\n```python b.py\nb = 1\n",
        "```python b.py: not read",
    ),
    "unclosed": ("```python\nprint(1)\n", "never closed"),
    "unclosed second": ("```python a.py\na = 1\n```\n```python b.py\nb = 1\n", "never closed"),
    "closed by the wrong kind": ("```python\nprint(1)\n~~~", "never closed"),
    "closed too short": ("````python\nprint(1)\n```", "never closed"),
    "twice the same": ("```python a.py\n1\n```\n```python a.py\n2\n```", "comes twice"),
    "upwards": ("```python ../a.py\n1\n```", "not a path inside"),
    "absolute": ("```python /tmp/a.py\n1\n```", "not a path inside"),
    "home": ("```python file=~/a.py\n1\n```", "not a path inside"),
    "windows": ("```python file=C:\\a.py\n1\n```", "not a path inside"),
    "empty block": ("```python a.py\n```", "is empty"),
}


@pytest.mark.parametrize("name", ONE)
def test_one_file(name: str) -> None:
    files = code_files(ONE[name], only="main.py")
    assert not isinstance(files, Refusal), files
    assert {file.path: file.text.strip() for file in files} == {"main.py": "print(1)"}


@pytest.mark.parametrize("name", NAMED)
def test_named_files(name: str) -> None:
    reply, expected = NAMED[name]
    files = code_files(reply, only="main.py", before=BEFORE)
    assert not isinstance(files, Refusal), files
    assert {file.path: file.text for file in files} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name: str) -> None:
    reply, reason = REFUSED[name]
    files = code_files(reply, only="main.py", before=BEFORE)
    assert isinstance(files, Refusal)
    assert reason in files.reason


def test_a_refused_function_is_named_once() -> None:
    reply, reason = REFUSED["a method of a class that is not there"]
    files = code_files(
        f"{reply}\n```python shop.py\n@@\n-def total(prices):\n+def total(p):\n```", before=BEFORE
    )
    assert isinstance(files, Refusal)
    assert files.reason == reason


def test_the_corpus_is_large_enough() -> None:
    assert len(ONE) + len(NAMED) + len(REFUSED) >= 60
