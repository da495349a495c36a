"""`config`: shows the settings and where each comes from, and prints the schemas of the settings files."""

import sys

import click

from septet.cli.output import print_text, put_exactly

SCHEMAS = ("team", "group-chat", "models", "mcp")


@click.group(epilog="Example: septet config show")
def config() -> None:
    """Show the settings of this machine, and the schemas of the settings files."""


@config.command(epilog="Example: septet config show --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def show(as_json: bool) -> int:
    """Show every setting, its value, and the variable or file that it comes from. Keys are never shown."""
    import anyio

    from septet.cli.config_values import all_settings
    from septet.common.text import printable
    from septet.domain.codec import ENCODER

    settings = anyio.run(all_settings)
    width = max(len(setting.name) for setting in settings)
    for setting in settings:
        value = f"{printable(setting.value)}  ({printable(setting.source)})" if setting.value else "not set"
        line = f"{setting.name:<{width}}  {value}"
        put_exactly(ENCODER.encode(setting).decode()) if as_json else print_text(line)
    sys.stdout.flush()
    return 0


@config.command(epilog="Example: septet config schema team > team.schema.json")
@click.argument("form", type=click.Choice(SCHEMAS), default="team")
def schema(form: str) -> int:
    """Print the JSON Schema of team.yaml (team), config.yaml (group-chat), models.yaml (models) or mcp.json (mcp).

    Editors use it to complete and validate: put `# yaml-language-server: $schema=team.schema.json` on the first line.
    """
    from septet.cli.config_values import file_schema

    put_exactly(file_schema(form).decode())
    sys.stdout.flush()
    return 0
