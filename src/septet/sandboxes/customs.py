"""What every Python inside a sandbox does first, as `sitecustomize`: what a program shows becomes a picture file."""

import os
import sys

TYPE_CHECKING = False  # not imported: a program's start is worth more
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_VIEWER = "PIL.ImageShow"


class Viewing:
    """Waits for Pillow's viewer to be imported and takes its place; until then it costs nothing."""

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
        save: Callable[[str], None] = getattr(image, "save")  # noqa: B009  any picture has it
        save(f"image-{self.count}.png")
        return True


if __name__ == "sitecustomize":
    os.environ.setdefault("MPLBACKEND", "module://septet_plots")
    sys.meta_path.insert(0, Viewing())
