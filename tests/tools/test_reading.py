"""Tools that read: what they show of a folder, and what nobody is shown."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tools.projects import FolderContext

from septet.domain.plans import Refusal
from septet.tools.reading import (
    MOST_MATCHES,
    MOST_SHOWN,
    matching_lines,
    numbered,
    outline_lines,
    reading_tools,
)
from septet.tools.registry import ToolResult
from septet.tools.syntax_outline import parser_of, syntax_definitions

pytestmark = pytest.mark.anyio
TOOLS = {one.name: one for one in reading_tools()}
SECRET = "token = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'\n"
MODULE = """\
import os


class Clock(Base):
    def hour(self, now: int = 0) -> int:
        return now

    async def tick(self):
        def inner(): ...
        return inner


def main(*args, **more):
    return Clock().hour()
"""


@pytest.fixture
def folder(tmp_path: Path) -> FolderContext:
    files = {
        "src/clock.py": MODULE,
        "src/page.ts": "export function draw(a: string) {\n}\nexport const go = (a) => 1\nclass Page {\n  x = 1\n}\n",
        "README.md": "# Clock\nhour by hour\n",
        ".gitignore": "build/\n",
        "build/out.py": "hour = 1\n",
        ".env": "HOUR=secret\n",
        "settings.py": SECRET + "hour = 2\n",
        "empty.txt": "",
        "picture.bin": "\0\1hour",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return FolderContext(tmp_path)


async def told(context: FolderContext, tool: str, **arguments: object) -> ToolResult:
    result = await TOOLS[tool].use(context, json.dumps(arguments))
    assert isinstance(result, ToolResult), result
    return result


async def refused(context: FolderContext, tool: str, **arguments: object) -> str:
    result = await TOOLS[tool].use(context, json.dumps(arguments))
    assert isinstance(result, Refusal), result
    return result.reason


async def test_files_are_listed_without_what_git_ignores_and_secrets(folder: FolderContext) -> None:
    listed = await told(folder, "list_files")
    assert listed.text.split("\n") == [
        ".gitignore",
        "README.md",
        "empty.txt",
        "picture.bin",
        "settings.py",
        "src/clock.py",
        "src/page.ts",
    ]
    assert (await told(folder, "list_files", folder="src/", pattern="*.py")).text == "src/clock.py"
    assert await refused(folder, "list_files", folder="lib") == "no file in 'lib'"


async def test_many_files_are_told_by_folder(tmp_path: Path) -> None:
    for number in range(250):
        path = tmp_path / f"part{number % 3}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    (tmp_path / "top.txt").write_text("x")
    listed = await told(FolderContext(tmp_path), "list_files")
    assert listed.text == "part0/ (84 files)\npart1/ (83 files)\npart2/ (83 files)\ntop.txt"
    assert listed.summary == "list . → 251 files"


@pytest.mark.parametrize("by", ["ripgrep", "python"])
async def test_a_search_finds_lines_of_files_that_may_be_read(
    folder: FolderContext, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "python":
        monkeypatch.setattr("septet.tools.reading.which", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    elif shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    found = await told(folder, "search", pattern=r"\bhour\b")
    assert found.text.split("\n") == [
        "README.md:2: hour by hour",
        "src/clock.py:5: def hour(self, now: int = 0) -> int:",
        "src/clock.py:14: return Clock().hour()",
    ]
    assert found.summary == r"search \bhour\b → 3 lines"
    assert (await told(folder, "search", pattern="hour", folder="src", files="*.ts")).text == "no match"
    one = await told(folder, "search", pattern="hour by", folder="README.md")
    assert one.text == "README.md:2: hour by hour"
    near = await told(folder, "search", pattern="def tick|def inner|def main", files="*.py", around=1)
    assert near.text.split("\n") == [
        "src/clock.py:",
        *(
            f"{number}\t{line}"
            for number, line in enumerate(MODULE.split("\n"), start=1)
            if 7 <= number <= 10
        ),
        "…",
        *(
            f"{number}\t{line}"
            for number, line in enumerate(MODULE.split("\n"), start=1)
            if 12 <= number <= 14
        ),
    ]
    assert "no regular expression" in await refused(folder, "search", pattern="(")


async def test_a_pattern_that_never_ends_is_given_up(
    folder: FolderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("septet.tools.reading.which", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr("septet.tools.reading.PATIENCE", 0.5)
    (folder.root / "long.txt").write_text("a" * 60 + "b\n")
    assert "takes too long" in await refused(folder, "search", pattern="(a+)+$")


async def test_definitions_come_with_their_lines(folder: FolderContext) -> None:
    assert (await told(folder, "outline", path="src/clock.py")).text == (
        "src/clock.py\n"
        "  4 class Clock(Base)\n"
        "  5   def hour(self, now: int=0) -> int\n"
        "  8   async def tick(self)\n"
        "  13 def main(*args, **more)"
    )
    whole = await told(folder, "outline")
    assert "src/page.ts\n  1 function draw(a: string)\n  3 go = (a)\n  4 class Page" in whole.text
    assert "settings.py" not in whole.text


def test_python_that_does_not_parse_is_outlined_by_its_looks() -> None:
    assert list(outline_lines("a.py", "def f(:\n    pass\nclass A:\n", nested=True)) == [
        "1 def f(:",
        "3 class A:",
    ]


async def test_lines_are_numbered(folder: FolderContext) -> None:
    part = await told(folder, "read", path="src/clock.py", start=4, end=5)
    assert (
        part.text
        == "4\tclass Clock(Base):\n5\t    def hour(self, now: int = 0) -> int:\n(src/clock.py has 14 lines)"
    )
    assert (part.summary, part.shown) == ("read 4–5 of src/clock.py", ())
    whole = await told(folder, "read", path="src/clock.py")
    assert whole.shown == ("src/clock.py",)
    assert whole.text.endswith("14\t    return Clock().hour()")
    assert (await told(folder, "read", path="empty.txt")).text == "(empty.txt is empty)"
    assert await refused(folder, "read", path="README.md", start=9) == "'README.md' has 2 lines"


async def test_a_long_file_is_read_in_parts(folder: FolderContext) -> None:
    (folder.root / "long.py").write_text("".join(f"x{number} = {number}\n" for number in range(3000)))
    first = await told(folder, "read", path="long.py")
    assert len(first.text.encode()) <= MOST_SHOWN + 100
    assert first.shown == ()
    last = int(first.text.splitlines()[-2].partition("\t")[0])
    assert first.text.endswith(f"(long.py has 3000 lines; go on with start={last + 1})")
    assert (await told(folder, "read", path="long.py", end=2)).text.endswith("(long.py has 3000 lines)")


@pytest.mark.parametrize(
    "path",
    [".env", "settings.py", "build/out.py", "link.py", "picture.bin", "../x", "/etc/passwd", ".git/config"],
)
async def test_what_nobody_may_read_is_not_read(folder: FolderContext, path: str) -> None:
    reason = await refused(folder, "read", path=path)
    assert "may not be read" in reason or "there is no" in reason


async def test_a_name_that_is_near_is_told(folder: FolderContext) -> None:
    assert (
        await refused(folder, "read", path="clock.py") == "there is no 'clock.py'; did you mean src/clock.py?"
    )


PAGE = "export abstract class Page<T> extends Base {\n  draw(): void {}\n  abstract y(): number\n}\n"
SOURCES = {
    "page.ts": (
        "export const go = (a: number) => {\n  return a\n}\nconst x = 1\n" + PAGE,
        [
            "1 go = (a: number)",
            "5 abstract class Page<T> extends Base",
            "6   draw(): void",
            "7   abstract y(): number",
        ],
    ),
    "main.go": (
        "type T struct {\n  A int\n}\n\nfunc (t *T) Go(x int) (int, error) {\n  return 1, nil\n}\n",
        ["1 T struct", "5 func (t *T) Go(x int) (int, error)"],
    ),
    "lib.rs": (
        "impl P {\n  pub fn new(x: i32) -> Self { P { x } }\n}\nmod tests { fn b() {} }\n",
        ["1 impl P", "2   pub fn new(x: i32) -> Self", "4 mod tests", "4   fn b()"],
    ),
    "A.java": (
        "public class A<T> {\n  int x;\n  int go(String a) throws E { return 1; }\n}\n",
        ["1 public class A<T>", "3   int go(String a) throws E"],
    ),
    "a.c": (
        "struct s { int a; };\nstatic int f(struct s *p,\n             int b)\n{\n  return 1;\n}\n",
        ["1 struct s", "2 static int f(struct s *p, int b)"],
    ),
    "a.hpp": (
        "namespace n {\nclass C : public D {\n  int f() const { return 1; }\n};\n}\n",
        ["1 namespace n", "2   class C : public D", "3     int f() const"],
    ),
}


@pytest.mark.parametrize("path", list(SOURCES))
def test_other_languages_are_outlined_by_their_grammar(path: str) -> None:
    text, lines = SOURCES[path]
    assert list(outline_lines(path, text, nested=True)) == lines


def test_without_a_grammar_definitions_are_found_by_how_lines_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("septet.tools.syntax_outline.import_module", missing_module)
    parser_of.cache_clear()
    try:
        found = list(outline_lines("main.go", SOURCES["main.go"][0], nested=True))
    finally:
        parser_of.cache_clear()
    assert found == ["1 type T struct", "5 func (t *T) Go(x int) (int, error)"]


def missing_module(name: str) -> None:
    raise ImportError(name)


def numbers(tmp_path: Path, count: int) -> FolderContext:
    (tmp_path / "a.txt").write_text("".join(f"hit {number}\n" for number in range(1, count + 1)))
    return FolderContext(tmp_path)


async def test_as_many_matches_as_fit_are_told_and_that_there_are_more(tmp_path: Path) -> None:
    for count, more in ((MOST_MATCHES, False), (MOST_MATCHES + 1, True), (MOST_MATCHES + 9, True)):
        said = await told(numbers(tmp_path, count), "search", pattern="hit")
        lines = said.text.split("\n")
        assert lines[MOST_MATCHES - 1] == f"a.txt:{MOST_MATCHES}: hit {MOST_MATCHES}"
        assert lines[MOST_MATCHES:] == (
            [f"… more than {MOST_MATCHES} matches: search for less"] if more else []
        )
        assert said.summary == f"search hit → {min(count, MOST_MATCHES + 1)} lines"


async def test_a_search_without_ripgrep_finds_the_same(
    folder: FolderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    both: list[str] = []
    for there in (True, False):
        if not there:
            monkeypatch.setattr("septet.tools.reading.which", dict[str, str]().get)
        both.append((await told(folder, "search", pattern="hour")).text)
    assert both[0] == both[1]
    assert (await told(folder, "search", pattern="nowhere at all")).text == "no match"
    assert (await told(folder, "search", pattern="hour", folder="nowhere")).text == "no match"


async def test_what_ripgrep_does_not_accept_python_searches(folder: FolderContext) -> None:
    said = await told(folder, "search", pattern=r"(?<=def )hour")
    assert said.text == "src/clock.py:5: def hour(self, now: int = 0) -> int:"


async def test_a_search_that_cannot_be_made_says_so(
    folder: FolderContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("septet.tools.reading.which", dict[str, str]().get)
    monkeypatch.setattr("septet.tools.reading.SEARCHER", "raise SystemExit(1)")
    assert await refused(folder, "search", pattern="x" * 90) == f"'{'x' * 80}' cannot be searched for"
    assert matching_lines(folder.root / "nowhere", "x", "", ["a"]) == []
    assert matching_lines(folder.root, "x", "", []) == []


async def test_neighbours_come_with_a_gap_between_them_and_within_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x 1\n2\n3\nx 4\n5\n6\n7\nx 8\n")
    said = await told(FolderContext(tmp_path), "search", pattern="x", around=1)
    assert said.text == "a.txt:\n1\tx 1\n2\t2\n3\t3\n4\tx 4\n5\t5\n…\n7\t7\n8\tx 8"


async def test_the_last_line_without_an_end_is_found_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\nhit")
    assert (await told(FolderContext(tmp_path), "search", pattern="hit")).text == "a.txt:2: hit"


async def test_a_folder_is_outlined_until_there_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.py").write_text(f"def {name}(): ...\nclass X:\n    def m(self): ...\n")
    monkeypatch.setattr("septet.tools.reading.MOST_OUTLINED", 6)
    said = await told(FolderContext(tmp_path), "outline")
    files = [f"{name}.py\n  1 def {name}()\n  2 class X\n  3   def m(self)" for name in ("a", "b")]
    assert said.text == "\n".join([*files, "… and more: outline a folder or a file of it"])
    monkeypatch.setattr("septet.tools.reading.MOST_OUTLINED", 8)
    assert (await told(FolderContext(tmp_path), "outline")).text.count("def m") == 3
    (tmp_path / "b.py").unlink()
    (tmp_path / "c.py").unlink()
    (tmp_path / "d.py").write_text("x = 1\n")
    assert (await told(FolderContext(tmp_path), "outline", path="d.py")).text == "no definitions"


def test_methods_are_left_out_where_many_files_are_outlined() -> None:
    text = "class A {\n  class B {\n}\n# Title\n"
    assert [*outline_lines("a.unknown", text, nested=True)] == ["1 class A", "2   class B", "4 # Title"]
    assert [*outline_lines("a.unknown", text, nested=False)] == ["1 class A", "4 # Title"]


def test_as_many_numbered_lines_as_fit_and_always_one() -> None:
    half = "x" * (MOST_SHOWN // 2 - 3)
    assert [*numbered([half, half, "y"], 1, 3)] == [f"1\t{half}", f"2\t{half}"]
    assert [*numbered([half, half + "x", "y"], 1, 3)] == [f"1\t{half}"]
    long = "z" * (MOST_SHOWN + 1)
    assert [*numbered([long, "y"], 1, 2)] == [f"1\t{long[:-1]}"]
    assert [*numbered(["a", "b", "c"], 2, 2)] == ["2\tb"]


async def test_a_read_says_what_is_left(folder: FolderContext, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n3")
    whole = await told(folder, "read", path="a.txt")
    assert (whole.text, whole.summary, whole.shown) == ("1\t1\n2\t2\n3\t3", "read a.txt", ("a.txt",))
    part = await told(folder, "read", path="a.txt", start=2, end=2)
    assert (part.text, part.summary, part.shown) == ("2\t2\n(a.txt has 3 lines)", "read 2–2 of a.txt", ())
    rest = await told(folder, "read", path="a.txt", start=2, end=9)
    assert (rest.text, rest.shown) == ("2\t2\n3\t3", ())
    assert (await told(folder, "read", path="a.txt", start=3)).text == "3\t3"
    assert await refused(folder, "read", path="a.txt", start=4) == "'a.txt' has 3 lines"
    assert (await told(folder, "read", path="empty.txt")).text == "(empty.txt is empty)"
    (tmp_path / "long.txt").write_text("x" * (MOST_SHOWN // 2) + "\n" + "y" * (MOST_SHOWN // 2) + "\nz\n")
    cut = await told(folder, "read", path="long.txt")
    assert cut.text.endswith("\n(long.txt has 3 lines; go on with start=2)")
    assert (cut.summary, cut.shown) == ("read 1–1 of long.txt", ())


def test_a_large_file_or_an_unknown_language_has_no_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "function f() {}\n"
    monkeypatch.setattr("septet.tools.syntax_outline.LARGEST", len(text))
    assert syntax_definitions("a.js", text, nested=False) == ["1 function f()"]
    assert syntax_definitions("a.js", text + " ", nested=False) is None
    assert syntax_definitions("a.unknown", text, nested=False) is None


async def test_a_wrong_call_is_told_which_arguments_there_are(folder: FolderContext) -> None:
    said = await TOOLS["read"].use(folder, '{"file_path": "README.md", "limit": 3}')
    assert isinstance(said, Refusal)
    assert said.reason.endswith("unknown field `file_path`; its arguments are path (needed), start and end")


async def test_whole_paths_of_the_workspace_are_taken(folder: FolderContext) -> None:
    assert "hour by hour" in (await told(folder, "read", path=f"{folder.root}/README.md")).text
    assert (
        "README.md:2" in (await told(folder, "search", pattern="by", folder=f"{folder.root}/README.md")).text
    )
    assert (await told(folder, "list_files", folder=f"{folder.root}/src")).text == "src/clock.py\nsrc/page.ts"
    assert isinstance(await TOOLS["read"].use(folder, '{"path": "/etc/passwd"}'), Refusal)
