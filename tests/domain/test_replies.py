"""Code out of replies: the right files or a clear reason, never a part of a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import Refusal
from septet.domain.replies import CodeFile, code_files

CODE = "print(1)\n"


@pytest.mark.parametrize(
    "reply",
    [
        "```python main.py\nprint(1)\n```",
        "```py main.py\nprint(1)\n```",
        "```Python main.py\nprint(1)\n```",
        "~~~python main.py\nprint(1)\n~~~",
        "```python:main.py\nprint(1)\n```",
        "```python file=main.py\nprint(1)\n```",
        '```python title="main.py"\nprint(1)\n```',
        "```main.py\nprint(1)\n```",
        "**main.py**\n```python\nprint(1)\n```",
        "### `main.py`:\n\n```python\nprint(1)\n```",
        "File: main.py\n```\nprint(1)\n```",
        "```python\r\nprint(1)\r\n```\r\n",
        "Sure, here it is:\n\n```python\nprint(1)\n```\nEnjoy!",
        "   ```python\nprint(1)\n   ```",
        "````python\nprint(1)\n````",
        "```python\nprint(1)\n```\n\nRun it:\n```bash\npython main.py\n```",
        "```python\nprint(1)\n\n\n```",
    ],
)
def test_one_file_however_it_is_fenced(reply: str) -> None:
    assert code_files(reply, only="main.py") == (CodeFile(path="main.py", text=CODE),)


def test_a_named_comment_is_a_name() -> None:
    files = code_files("```python\n# file: pkg/tool.py\nx = 1\n```")
    assert files == (CodeFile(path="pkg/tool.py", text="# file: pkg/tool.py\nx = 1\n"),)


def test_fences_inside_a_block_belong_to_it() -> None:
    readme = "# Use\n\n```bash\npython main.py\n```\n\nDone."
    files = code_files(f"```markdown README.md\n{readme}\n```\n```python main.py\nprint(1)\n```")
    assert files == (CodeFile(path="README.md", text=readme + "\n"), CodeFile(path="main.py", text=CODE))


def test_several_files_keep_their_order() -> None:
    reply = "```python b.py\nb = 1\n```\ntext\n```python a.py\na = 1\n```"
    assert code_files(reply) == (CodeFile(path="b.py", text="b = 1\n"), CodeFile(path="a.py", text="a = 1\n"))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It is done.", "no code block"),
        ("```python\na\n```\n```python\nb\n```", "2 code blocks without a file name"),
        ("```javascript\nlet a\n```", "javascript, not python"),
        ("```python main.py\nprint(1)", "never closed"),
        ("```python ../main.py\nprint(1)\n```", "not a path inside"),
        ("```python /etc/passwd.py\nprint(1)\n```", "not a path inside"),
        ("```python a.py\n1\n```\n```python a.py\n2\n```", "comes twice"),
        ("", "no code block"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(reply: str, reason: str) -> None:
    files = code_files(reply, only="main.py")
    assert isinstance(files, Refusal)
    assert reason in files.reason


@given(st.text())
def test_any_text_gives_files_or_a_refusal(reply: str) -> None:
    files = code_files(reply, only="main.py")
    assert isinstance(files, Refusal) or files


@given(st.lists(st.from_regex(r"[ a-z=()0-9#'\"]{0,30}", fullmatch=True), max_size=20))
def test_what_is_sent_is_what_is_kept(lines: list[str]) -> None:
    body = "\n".join(["x = 0", *lines]).rstrip()
    files = code_files(f"```python a.py\n{body}\n```")
    assert files == (CodeFile(path="a.py", text=body + "\n"),)
