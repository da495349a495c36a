"""`config`: what is set and by what, never a secret; schemas that the files really keep to."""

import re
from pathlib import Path

import jsonschema
import msgspec
import pytest
from cli.commands import Septet, envelopes

README = Path(__file__).parent.parent.parent / "README.md"


def told(septet: Septet, **environment: str) -> dict[str, tuple[str, str]]:
    shown = septet("config", "show", "--json", environment=environment)
    assert shown.returncode == 0, shown.stderr
    return {str(one["name"]): (str(one["value"]), str(one["source"])) for one in envelopes(shown.stdout)}


def test_every_value_names_what_gave_it(septet: Septet) -> None:
    before = told(septet)
    assert before["home.data"] == (str(septet.home), "variable SEPTET_HOME")
    assert before["openai.url"] == ("https://api.openai.com/v1", "default")
    assert before["openai.key"] == ("", "default")
    assert not septet.home.exists()
    assert septet("keys", "set", "openai", stdin="sk-kept-secret").returncode == 0
    (septet.home / "config" / "mcp.json").write_text(
        '{"mcpServers": {"files": {"command": "x", "env": {"K": "hush"}}}}'
    )
    after = told(septet, SEPTET_MODEL="openai/some", OLLAMA_HOST=" ", ANTHROPIC_API_KEY="sk-variable")
    assert after["model"] == ("openai/some", "variable SEPTET_MODEL")
    assert after["ollama.url"][1] == "default", "a blank variable sets nothing"
    assert after["openai.key"] == ("set, not shown", f"file {septet.home / 'config' / 'keys.json'}")
    assert after["anthropic.key"] == ("set, not shown", "variable ANTHROPIC_API_KEY")
    assert after["mcp"] == ("files", f"file {septet.home / 'config' / 'mcp.json'}")
    assert told(septet, OPENAI_API_KEY="sk-other")["openai.key"][1] == "variable OPENAI_API_KEY"


def test_no_secret_is_shown(septet: Septet) -> None:
    assert septet("keys", "set", "url", stdin="hush-hush-1").returncode == 0
    variables = {
        "OPENAI_API_KEY": "sk-hush-2",
        "AZURE_OPENAI_AD_TOKEN": "hush-3",
        "SEPTET_TOKEN": "hush-4",
        "UV_DEFAULT_INDEX": "https://hush:hush-5@index.example/simple?sig=hush-6",
        "OPENAI_BASE_URL": "https://hush-7@proxy.example/hush-hush-1/v1",
    }
    for args in ((), ("--json",)):
        shown = septet("config", "show", *args, environment=variables).stdout
        assert "https://…@index.example/simple?…" in shown
        assert "https://…@proxy.example/…/v1" in shown
        assert "hush" not in shown


def test_a_file_that_cannot_be_read_is_named(septet: Septet) -> None:
    (septet.home / "config").mkdir(parents=True)
    (septet.home / "config" / "models.yaml").write_text("weight: []\n")
    refused = septet("config", "show")
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "models.yaml:1" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("form", ["team", "group-chat", "models", "mcp"])
def test_a_schema_takes_what_septet_takes(septet: Septet, form: str) -> None:
    schema = msgspec.json.decode(septet("config", "schema", form).stdout, type=dict[str, object])
    jsonschema.Draft202012Validator.check_schema(schema)
    (team,) = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    good = {
        "team": team,
        "group-chat": "group_chat_manager: {max_rounds: 3}",
        "models": "weights: []",
        "mcp": '{"mcpServers": {"files": {"command": "npx", "args": ["x"]}}}',
    }
    jsonschema.validate(msgspec.yaml.decode(good[form]), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"members": 5, "weights": 5, "host": 5, "mcpServers": 5}, schema)
