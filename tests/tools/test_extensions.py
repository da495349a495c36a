"""Installed packages bring actions and tools of their own: found by their entry points, used like ours."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet
from pydantic import BaseModel
from scenarios.assistant.scripts import calls, says, send, write
from scenarios.autocoder.hello import CASES, Step, fill, write_script

from septet import Hands
from septet.domain.runs import RunResult
from septet.errors import SandboxFailed
from septet.tools.registry import Tool

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
"""


class Broken(BaseModel):
    """Run something."""

    async def use(self, hands: Hands) -> str:
        return str(await hands.execute("main.py"))


class NoHands:
    """The sandbox itself is broken."""

    texts: Mapping[str, str] = {}

    def exists(self, path: str) -> bool:
        return False

    def write(self, path: str, text: str | None) -> None:
        return None

    async def execute(self, path: str) -> RunResult:
        raise SandboxFailed("the sandbox broke", "resume")


@pytest.mark.anyio
async def test_a_broken_sandbox_is_not_told_as_the_failure_of_a_tool() -> None:
    with pytest.raises(SandboxFailed):
        await Tool(Broken).use("{}", NoHands())


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
