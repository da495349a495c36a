"""A matplotlib backend that saves figures as PNG files instead of showing them; installed as `septet_plots`."""

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

FigureCanvas = FigureCanvasAgg
FigureManager = FigureManagerBase
_saved: "list[str]" = []


def show(*arguments: object, **options: object) -> None:
    """Save all figures and close them, as they are closed when a blocking window returns."""
    for manager in Gcf.get_all_fig_managers():
        _saved.append(f"figure-{len(_saved) + 1}.png")
        manager.canvas.figure.savefig(_saved[-1])  # pyright: ignore[reportUnknownMemberType]  # incomplete types
    Gcf.destroy_all()
