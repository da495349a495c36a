"""Models by name: which adapter stands behind `scripted:`, `replay:` and the others."""

from pathlib import Path

from septet.errors import BadConfig, NoModel
from septet.models.replay import ReplayModel, load_recording
from septet.models.scripted import ScriptedModel, load_script
from septet.ports import Model

DEMOS = Path(__file__).parent.parent / "demos"


def settled_name(name: str) -> str:
    """A name that means the same from any folder and after any restart: it goes into the log."""
    scheme, _, rest = name.partition(":")
    if scheme in ("scripted", "replay") and rest and not rest.startswith("demo/"):
        return f"{scheme}:{Path(rest).expanduser().absolute()}"
    return name


def open_model(name: str) -> Model:
    """The model that a name stands for."""
    scheme, _, rest = name.partition(":")
    if scheme == "scripted" and rest:
        return ScriptedModel(load_script(script_path(rest)), rest.rsplit("/", 1)[-1].removesuffix(".yaml"))
    if scheme == "replay" and rest:
        return ReplayModel(load_recording(Path(rest)), Path(rest).name)
    if not name:
        raise NoModel("no model was chosen", "pass -m NAME, or watch one at work: septet demo")
    raise BadConfig(f"'{name[:80]}' names no model", "use scripted:FILE or replay:FILE")


def script_path(rest: str) -> Path:
    return DEMOS / f"{rest.removeprefix('demo/')}.yaml" if rest.startswith("demo/") else Path(rest)
