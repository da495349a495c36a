"""The demos in the package: the folder of their scripts, and their names."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "demos"


def demo_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))
