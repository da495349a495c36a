"""Installed packages bring actions and tools of their own: found by their entry points, used like ours."""

import textwrap
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet
from pydantic import BaseModel, Field
from scenarios.assistant.scripts import calls, file, says, send, write
from scenarios.autocoder.hello import CASES, Step, fill, write_script
from tools.projects import ProjectContext, project

from septet import ToolContext
from septet.domain.plans import Refusal
from septet.errors import BadConfig, SandboxFailed
from septet.tools.registry import tool_of_class

PACKAGE = '''
    from pydantic import BaseModel

    from septet import Context, Hands, action


    @action
    def sign(context: Context, name: str) -> Context:
        """Sign main.py."""
        return context.with_file("main.py", f"# {name}\\n{context.file('main.py')}")


    class Shout(BaseModel):
        """Say it loudly."""

        text: str

        def use(self, hands: Hands) -> str:
            return self.text.upper()
'''
POINTS = """
[septet.actions]
sign = extension:sign

[septet.tools]
shouting = extension:Shout
counting = word_count:CountWords

[septet.checks]
lines = line_limit:KIND
"""
TESTS = Path(__file__).parent.parent
OUTSIDE = (TESTS / "tools" / "word_count.py", TESTS / "agents" / "line_limit.py")
"""A tool and a kind of check as somebody else would write them."""
PLAN = """\
1. It says hello.
   check: lines hello.py 2
run: python hello.py
"""
CODE = """\
```python hello.py
{lines}
```
```python test_hello.py
import subprocess, sys
def test_hello():
    run = subprocess.run([sys.executable, "hello.py"], capture_output=True, text=True)
    assert run.stdout.strip() == "hello"
```
"""


class Greeting(BaseModel):
    """Greet somebody."""

    name: str = Field(description="Who it is.")
    times: int = 1

    def use(self, context: ToolContext) -> str:
        return f"hello {self.name} " * self.times


@dataclass
class Broken:
    """Run something."""

    async def use(self, context: ToolContext) -> str:
        return str(await context.execute("main.py"))


@pytest.mark.anyio
async def test_a_broken_sandbox_is_not_told_as_the_failure_of_a_tool() -> None:
    with pytest.raises(SandboxFailed):
        await tool_of_class(Broken).use(ProjectContext(project()), "{}")


@pytest.mark.anyio
async def test_a_pydantic_model_is_a_tool() -> None:
    """Of a program that has that library; nothing here needs it."""
    greeting = tool_of_class(Greeting)
    context = ProjectContext(project())
    assert "'description': 'Who it is.'" in str(greeting.parameters)
    assert greeting.parameters["required"] == ["name"]
    assert await greeting.use(context, '{"name": "Ada"}') == "hello Ada "
    refused = await greeting.use(context, '{"times": "many"}')
    assert isinstance(refused, Refusal)
    assert "name; Field required; times; Input should be a valid integer" in refused.reason


def test_a_class_without_fields_is_named() -> None:
    class Plain:
        """Do something."""

        def use(self, context: ToolContext) -> str:
            return "done"

    with pytest.raises(BadConfig, match="'Plain' has no fields: put @dataclass on the class"):
        tool_of_class(Plain)


def test_a_package_that_cannot_be_loaded_is_named(extended: Septet, tmp_path: Path) -> None:
    (tmp_path / "site" / "extension.py").write_text("import nothing_of_this_name\n")
    model = write(tmp_path / "script.yaml", says("proxy", "CERTAIN: yes"))
    failed = extended("run", "shout", "-t", "assistant", "-m", model)
    assert failed.returncode == 5, failed.stderr
    assert "'shouting' (extension:Shout) of an installed package cannot be loaded" in failed.stderr


@pytest.fixture
def extended(tmp_path: Path) -> Septet:
    """A home beside which a package is installed."""
    septet = Septet(tmp_path / "home")
    site = tmp_path / "site"
    info = site / "extension-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "extension.py").write_text(textwrap.dedent(PACKAGE))
    for path in OUTSIDE:
        (site / path.name).write_text(path.read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extension\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    septet.environment["PYTHONPATH"] = str(site)
    return septet


def test_an_action_of_a_package(extended: Septet, tmp_path: Path) -> None:
    case = CASES["wrong code"]
    project = fill(tmp_path / "project", case.files)
    decision = case.steps[0].arguments["decision"]
    signed = Step("sign", {"name": "me", "decision": decision}, "sign")
    mended = {**case.steps[0].arguments, "start_line": 3, "end_line": 3}
    steps = (signed, case.steps[0]._replace(arguments=mended))
    model = write_script(tmp_path / "script.yaml", steps)
    done = extended("run", "greet", "-t", "autocoder", "-m", model, "-C", "project", "-q")
    assert done.returncode == 0, done.stderr
    assert (project / "main.py").read_text().startswith("# me\n")


def test_a_tool_of_a_package(extended: Septet, tmp_path: Path) -> None:
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("shout hello")),
        calls("assistant", ("Shout", {"text": "hello"})),
        says("assistant", "it was shouted", expect="HELLO"),
        says("proxy", "It was shouted."),
    )
    done = extended("run", "shout", "-t", "assistant", "-m", model, "--json", "-q")
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout.splitlines()[-1])["answer"] == "It was shouted."


def test_a_tool_from_outside_is_short(extended: Septet, tmp_path: Path) -> None:
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("count")),
        calls("assistant", file("a.txt", "one two three"), ("CountWords", {"path": "a.txt"})),
        says("assistant", "three", expect="a.txt has 3 words"),
        says("proxy", "They were counted."),
    )
    done = extended("run", "count", "-t", "assistant", "-m", model, "-q")
    assert done.returncode == 0, done.stderr


def test_a_kind_of_check_from_outside_decides_about_done(extended: Septet, tmp_path: Path) -> None:
    long = "greeting = 'hello'\n\nprint(greeting)"
    model = write(
        tmp_path / "script.yaml",
        says("planner", PLAN, expect="- lines PATH N (the file has at most N lines)"),
        says("coder", CODE.format(lines=long)),
        says("reviewer", "verdict: accept"),
        says("coder", CODE.format(lines="print('hello')"), expect="P1 NOT met: 3 of 2 lines"),
        says("reviewer", "verdict: accept"),
    )
    done = extended("run", "hello", "-m", model, "--yes", "--json", "-q")
    assert done.returncode == 0, done.stderr
    result = msgspec.json.decode(done.stdout.splitlines()[-1])
    assert result["status"] == "done"
    assert "1 of 2 lines" in str(result)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.stem)
def test_what_comes_from_outside_fits_on_a_page(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 30
