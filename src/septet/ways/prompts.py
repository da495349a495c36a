"""Loads prompts from files, one per role: `prompts/ROLE.md` of a way, with its version in the first line."""

import re
from functools import cache
from importlib.resources import files

from septet.common.values import Value

VERSION = re.compile(r"<!-- version: (\d+) -->\n")


class Prompt(Value):
    """The prompt of a role, the same bytes at the start of every request. A changed text has a new version."""

    version: int
    text: str


@cache
def prompt(package: str, name: str) -> Prompt:
    """The prompt of that name in a way's package; read once, when first needed."""
    whole = (files(package) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    head = VERSION.match(whole)
    assert head is not None, f"prompts/{name}.md of {package} does not begin with its version"
    return Prompt(version=int(head[1]), text=whole[head.end() :])


def prompt_text(package: str, name: str) -> str:
    return prompt(package, name).text
