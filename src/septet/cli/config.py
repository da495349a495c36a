"""`config`: what is set, where and by what; and the forms of the files that people write."""

import sys

import click

from septet.cli.output import print_text, put_exactly

FORMS = ("team", "group-chat", "models", "mcp")


@click.group(epilog="Example: septet config show")
def config() -> None:
    """What is set on this machine, and what the files may say."""


@config.command(epilog="Example: septet config show --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(as_json: bool) -> int:
    """Every setting, its value, and the variable or file that gave it. Keys are never shown."""
    import anyio

    from septet.cli.config_values import all_settings
    from septet.common.text import printable
    from septet.domain.codec import ENCODER

    found = anyio.run(all_settings)
    width = max(len(one.name) for one in found)
    for one in found:
        said = f"{printable(one.value)}  ({printable(one.source)})" if one.value else "not set"
        line = f"{one.name:<{width}}  {said}"
        put_exactly(ENCODER.encode(one).decode()) if as_json else print_text(line)
    sys.stdout.flush()
    return 0


@config.command(epilog="Example: septet config schema team > team.schema.json")
@click.argument("form", type=click.Choice(FORMS), default="team")
def schema(form: str) -> int:
    """The JSON Schema of a file: team (team.yaml), group-chat (config.yaml), models (models.yaml), mcp (mcp.json).

    Editors complete and check by it: put `# yaml-language-server: $schema=team.schema.json` on the first line.
    """
    from septet.cli.config_values import file_schema as schema_of

    put_exactly(schema_of(form).decode())
    sys.stdout.flush()
    return 0
