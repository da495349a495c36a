"""The demos that come with the program: where their scripts are, and what they are called."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "demos"


def demo_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))
