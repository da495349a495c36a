"""A corpus of model replies: what they were meant to say, or the reason why they cannot be used (R14)."""

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
    "json beside": '```python\nprint(1)\n```\n```json\n{"a": 1}\n```',
    "attributes": "```python {.line-numbers}\nprint(1)\n```",
    "pandoc": "```{.python}\nprint(1)\n```",
    "heading then code": "# The program\n\n```python\nprint(1)\n```",
    "thinking first": "<think>```maybe```</think>\n\n```python\nprint(1)\n```",
    "quote in prose": "> a remark\n\n```python\nprint(1)\n```",
    "no newline at the end": "```python\nprint(1)\n```",
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
    "named wins over unnamed": (
        "```python a.py\na = 1\n```\nRun:\n```python\nimport a\n```",
        {"a.py": A},
    ),
}

REFUSED = {
    "nothing": ("I have fixed the bug.", "no code block"),
    "empty": ("", "no code block"),
    "inline only": ("Use `print(1)`.", "no code block"),
    "two unnamed": ("```python\na\n```\nand\n```python\nb\n```", "2 code blocks without a file name"),
    "wrong language": ("```javascript\nlet a\n```", "javascript, not python"),
    "diff": (DIFF, "diff, not python"),
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
    files = code_files(reply, only="main.py")
    assert not isinstance(files, Refusal), files
    assert {file.path: file.text for file in files} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name: str) -> None:
    reply, reason = REFUSED[name]
    files = code_files(reply, only="main.py")
    assert isinstance(files, Refusal)
    assert reason in files.reason


def test_the_corpus_is_large_enough() -> None:
    assert len(ONE) + len(NAMED) + len(REFUSED) >= 60
