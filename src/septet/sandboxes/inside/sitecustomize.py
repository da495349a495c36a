"""Run first by every Python inside a sandbox, as `sitecustomize`: makes the project's sources and pytest importable,
and saves shown images as files. It must work with any Python that a project has."""

import os
import sys

TYPE_CHECKING = False  # importing typing would slow down every start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_VIEWER = "PIL.ImageShow"
_PYTEST = ("pytest", "_pytest")


class ImageViewer:
    """Replaces Pillow's image viewer when that is imported; until then it costs nothing."""

    def __init__(self) -> None:
        self.count = 0

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name != _VIEWER:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.execute(execute, module)  # pyright: ignore[reportAttributeAccessIssue]  # a loader's method may be replaced
        return spec

    def execute(self, original: "Callable[[ModuleType], None]", module: "ModuleType") -> None:
        original(module)
        setattr(module, "show", self.show)  # noqa: B010  no module declares it

    def show(self, image: object, title: "str | None" = None, **options: object) -> bool:
        self.count += 1
        save: Callable[[str], None] = getattr(image, "save")  # noqa: B009  images have it
        save(f"image-{self.count}.png")
        return True


class PytestFinder:
    """Finds pytest if the project has none. Its dependencies become importable only with it, so that a program does not
    depend on them by accident."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name not in _PYTEST:
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        sys.path.append(self.folder)
        return PathFinder.find_spec(name)


def extend_path(sources: str, sites: str) -> None:
    """Add the project's sources before the installed packages, and more package folders at the end."""
    if sources:
        installed = [index for index, path in enumerate(sys.path) if path.endswith("-packages")]
        sys.path.insert(installed[0] if installed else len(sys.path), sources)
    if sites:
        from site import addsitedir

        addsitedir(sites)


if __name__ == "sitecustomize":
    os.environ.setdefault("MPLBACKEND", "module://septet_plots")
    sys.meta_path.insert(0, ImageViewer())
    extend_path(os.environ.get("SEPTET_SOURCES", ""), os.environ.get("SEPTET_SITES", ""))
    if "SEPTET_PYTEST" in os.environ:
        sys.meta_path.append(PytestFinder(os.environ["SEPTET_PYTEST"]))
