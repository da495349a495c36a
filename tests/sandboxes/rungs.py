"""The rungs of this machine, for suites that run over all of them."""

from collections.abc import Callable

from septet.ports import Sandbox
from septet.sandboxes.bubblewrap import Bubblewrap
from septet.sandboxes.unsafe import UnsafeLocal

RUNGS: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": Bubblewrap.found,
    "unsafe": UnsafeLocal,
}
CONFINING = tuple(name for name in RUNGS if name != "unsafe")
