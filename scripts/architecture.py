"""Draws the picture of docs/architecture.md from the import graph.

python scripts/architecture.py           draw it anew
python scripts/architecture.py --check   fail where the page shows another one
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from import_graph import ROOT, Graph, Source, siblings

PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- drawn by scripts/architecture.py -->\n", "<!-- end of the picture -->\n"


def layers(root: Path) -> list[list[str]]:
    """The rows of the picture, as the contract in pyproject.toml names them, the highest first."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (one for one in settings["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    return [[name.strip(" ()") for name in row.split("|")] for row in contract["layers"]]


def below(graph: Graph, name: str) -> set[str]:
    """Everything that a package imports, also through others."""
    found: set[str] = set()
    for one in graph[name] - found:
        found |= {one} | below(graph, one)
    return found


def arrows(graph: Graph) -> Iterator[tuple[str, str]]:
    """Imports that no other import stands for: a package may use whatever it reaches by the arrows."""
    for name, imported in sorted(graph.items()):
        through: set[str] = set()
        for one in imported:
            through |= below(graph, one)
        yield from ((name, one) for one in sorted(imported - through))


def picture(source: Source) -> str:
    graph = siblings(source.graph)
    rows = [[name for name in row if name in graph] for row in layers(source.root)]
    drawn = {name for row in rows for name in row}
    lines = ["```mermaid", "flowchart TD"]
    for number, row in enumerate(rows):
        boxes = "; ".join(f"{name}[{name}]" for name in row)
        lines += (
            [f'  subgraph layer{number}[" "]', f"    {boxes}", "  end"] if len(row) > 1 else [f"  {boxes}"]
        )
    lines += [f"  {name} --> {one}" for name, one in arrows(graph) if {name, one} <= drawn]
    return "\n".join([*lines, "```", ""])


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    drawn = f"{before}{START}{picture(Source(ROOT))}{END}{after}"
    if "--check" in sys.argv[1:]:
        if drawn != page:
            print(f"{PAGE.name} shows another house: python scripts/architecture.py draws it anew")
        return int(drawn != page)
    PAGE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
