"""Tools of a real MCP server in the assistant's toolbox: listed with their schema, called with checked arguments."""

import sys
from pathlib import Path

import msgspec
import pytest
from cli.commands import Septet
from scenarios.assistant.scripts import calls, says, send, write
from tools.projects import ProjectContext, project

from septet.domain.codec import decode
from septet.domain.events import AnswerGiven, ToolAnswered
from septet.domain.messages import ToolOffer
from septet.domain.plans import Refusal
from septet.wiring.mcp import mcp_tool

SERVER = Path(__file__).parent / "mcp_server.py"


@pytest.fixture
def words(septet: Septet) -> Septet:
    added = septet("mcp", "add", "words", "--", sys.executable, str(SERVER))
    assert added.returncode == 0, added.stderr
    assert added.stdout == "words_count  Count the words of a text.\nwords_fail  Always fails.\n"
    return septet


def test_an_assistant_uses_them_like_its_own(words: Septet, tmp_path: Path) -> None:
    model = write(
        tmp_path / "script.yaml",
        calls("proxy", send("count the words of a, b and c")),
        calls("assistant", ("words_count", {"text": "a b c"}), ("words_count", {"text": "a b", "times": 2})),
        calls("assistant", ("words_count", {"times": "many"}), ("words_fail", {"reason": "no luck"})),
        says("assistant", "three and four", expect="Error executing tool fail"),
        says("proxy", "They were counted."),
    )
    done = words("run", "count", "-t", "assistant", "-m", model, "-q", "-n", "counting")
    assert done.returncode == 0, done.stderr
    log = [
        decode(line).event for line in words("export", "counting", "--format", "jsonl").stdout.splitlines()
    ]
    told = [(event.failed, event.text) for event in log if isinstance(event, ToolAnswered)]
    assert told[:2] == [(False, "words: 3, calls: 1"), (False, "words: 4, calls: 2")], (
        "one server for all calls"
    )
    assert told[2][0]
    assert "words_count cannot be called like that: $: 'text' is a required property" in told[2][1]
    assert "'many' is not of type 'integer'" in told[2][1]
    assert told[3][0]
    assert any(isinstance(event, AnswerGiven) for event in log)


@pytest.mark.torture
def test_servers_are_listed_and_forgotten(words: Septet) -> None:
    kept = msgspec.json.decode((words.home / "config" / "mcp.json").read_bytes())
    assert kept == {"mcpServers": {"words": {"command": sys.executable, "args": [str(SERVER)]}}}
    assert (words.home / "config" / "mcp.json").stat().st_mode & 0o077 == 0
    assert "words_count" in words("mcp", "list").stdout
    assert words("mcp", "rm", "words").returncode == 0
    assert words("mcp", "list").stdout == ""
    assert "there is no MCP server 'words'" in words("mcp", "rm", "words").stderr


@pytest.mark.parametrize("command", [["no-such-program-anywhere"], [sys.executable, "-c", "print('hello')"]])
@pytest.mark.torture
def test_what_is_no_server_is_refused_in_a_line(septet: Septet, command: list[str]) -> None:
    refused = septet("mcp", "add", "odd", "--", *command)
    assert refused.returncode == 5
    assert refused.stderr.startswith(
        ("septet: the MCP server 'odd' does not work", "septet: there is no program")
    )
    assert refused.stderr.count("\n") == 1
    assert septet("mcp", "list").stdout == ""


@pytest.mark.anyio
async def test_arguments_that_are_no_object_never_reach_the_tool() -> None:
    async def call(arguments: object) -> str:
        raise AssertionError(arguments)

    tool = mcp_tool(ToolOffer(name="t", description="d", parameters={}), lambda _: "never fits", call)
    for text in ("[1]", "{", "__import__('os')", '{"a": 1}'):
        assert isinstance(await tool.use(ProjectContext(project()), text), Refusal)
