"""Code out of replies: the right files or a clear reason, never a part of a file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.domain.plans import Refusal
from septet.domain.replies import CodeFile, code_blocks, code_files, is_path

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
        "**2. main.py**\n```python\nprint(1)\n```",
        "3. **main.py**:\n```python\nprint(1)\n```",
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
        ("```javascript\nlet a\n```", "1 code block without a file name"),
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


PARTS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,6}", fullmatch=True)
ENDINGS = st.sampled_from([".py", ".yml", ".txt", ".c", ".tar.gz"])
FILES = st.one_of(
    st.tuples(PARTS, ENDINGS).map("".join),
    st.sampled_from(["Makefile", "Dockerfile", "LICENSE", ".gitignore", ".env.example", "my file.py"]),
)
FOLDERS = st.sampled_from(["", "src/", ".github/workflows/", "a-b/c.d/"])
PATHS = st.tuples(FOLDERS, FILES).map("".join)
WAYS = st.sampled_from(
    [
        "```python {path}\n{text}```",
        "```{path}\n{text}```",
        "```yaml:{path}\n{text}```",
        '```text title="{path}"\n{text}```',
        "**{path}**\n```python\n{text}```",
        "### `{path}`:\n\n~~~\n{text}~~~",
        "2) File: {path}\n````\n{text}````",
        "- one more\n\n  ```sh {path}\n{text}  ```",
    ]
)
TEXTS = st.sampled_from(["a = 1\n", "on: push\n", "if 1:\n\tx = '`'\n", "--- a\nb\n", "all:\n\tls\n"])


@given(st.lists(st.tuples(PATHS, WAYS, TEXTS), min_size=1, max_size=4), st.sampled_from(["", "So:\n", "1\n"]))
def test_no_named_file_vanishes(sent: list[tuple[str, str, str]], prose: str) -> None:
    """Whatever a reply names is among its files, letter by letter, or the reply is refused with a reason."""
    reply = prose + "\n\n".join(way.format(path=path, text=text) for path, way, text in sent)
    files = code_files(reply, only="main.py")
    if isinstance(files, Refusal):
        odd = any(" " in path for path, _, _ in sent) or len({path for path, _, _ in sent}) < len(sent)
        assert odd, files.reason
        assert files.reason
        return
    assert {file.path: file.text for file in files} == {path: text for path, _, text in sent}


@given(st.lists(st.sampled_from(["```", "```python", "```python a.py", "a.py", "x = 1", "", "1"])))
def test_no_block_of_code_vanishes(lines: list[str]) -> None:
    """Each line of code that stands in a block is in a file, or the reply is refused."""
    files = code_files("\n".join(lines), only="main.py")
    blocks = code_blocks("\n".join(lines))
    if isinstance(files, Refusal) or isinstance(blocks, Refusal):
        return
    code = sum(block.text.count("x = 1") for block in blocks)
    assert sum(file.text.count("x = 1") for file in files) == code


@pytest.mark.parametrize(
    ("text", "reads_so"),
    [
        *((one, True) for one in ("a.py", "./a.py", "a/b.py", "/a", "../a", "~/a", "a\\b")),
        *((one, False) for one in ("/", "//", "\\", "3.11", "")),
    ],
)
def test_what_reads_like_a_path_of_a_file(text: str, reads_so: bool) -> None:
    assert is_path(text) is reads_so
