"""A backend of matplotlib that shows figures by leaving pictures; in sandboxes it is called `septet_plots`."""

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

FigureCanvas = FigureCanvasAgg
FigureManager = FigureManagerBase
_shown: "list[str]" = []


def show(*arguments: object, **options: object) -> None:
    """As a window does, it has the figures closed when it comes back."""
    for manager in Gcf.get_all_fig_managers():
        _shown.append(f"figure-{len(_shown) + 1}.png")
        manager.canvas.figure.savefig(_shown[-1])  # pyright: ignore[reportUnknownMemberType]  # theirs says too little
    Gcf.destroy_all()
