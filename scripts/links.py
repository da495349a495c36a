"""Relative links of Markdown pages, rewritten for a place where the repository is not around the page."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from posixpath import normpath

Target = Callable[[str], str | None]
"""Where a file of the repository is found from the new place; None where it is not."""
FENCE = re.compile(r"(^```.*?^```\s*?$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\(((?![a-z]+:|#|//)[^)#\s]+)(#[^)\s]*)?\)")
IMAGE = re.compile(r'<img src="(?![a-z]+:)([^"]+)" alt="([^"]*)">')


def rewrite_links(text: str, page: str, target: Target) -> str:
    """Return the text of `page` (its path in the repository) with its links as `target` says.

    A link without a target becomes its text, a picture its description. Code is left as it is.
    """
    folder = PurePosixPath(page).parent

    def link(found: re.Match[str]) -> str:
        bang, label, path, fragment = found[1], found[2], found[3], found[4] or ""
        new = target(normpath(folder / path))
        if new is None:
            return f"*{label}*" if bang else label
        return f"{bang}[{label}]({new}{fragment})"

    def image(found: re.Match[str]) -> str:
        new = target(normpath(folder / found[1]))
        return f"*{found[2]}*" if new is None else f'<img src="{new}" alt="{found[2]}">'

    parts = FENCE.split(LINK_LABELS.sub(protect, text))
    words = [part if at % 2 else IMAGE.sub(image, LINK.sub(link, part)) for at, part in enumerate(parts)]
    return "".join(words).replace(TICK, "`")


TICK = "\x00"
LINK_LABELS = re.compile(r"\[`([^`\]\n]+)`\](?=\()")


def protect(found: re.Match[str]) -> str:
    """Hide the marks of code in a link's label, since code elsewhere holds no links."""
    return f"[{TICK}{found[1]}{TICK}]"
