"""The rungs of this machine, for suites that run over all of them."""

import os
from collections.abc import Callable

import pytest

from septet.errors import NoSandbox
from septet.ports import Sandbox
from septet.sandboxes.rungs import namespaces
from septet.sandboxes.rungs.bubblewrap import Bubblewrap
from septet.sandboxes.rungs.containers import Container
from septet.sandboxes.rungs.landlock import Landlock
from septet.sandboxes.rungs.unsafe import UnsafeLocal


def usable_podman() -> Sandbox:
    """Or the test is skipped: nobody need have a container engine."""
    try:
        return Container.podman()
    except NoSandbox as error:
        pytest.skip(str(error))


RUNGS: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": Bubblewrap.detect,
    "namespaces": namespaces.detect,
    "landlock": Landlock.detect,
    "unsafe": UnsafeLocal,
    "podman": usable_podman,
}
_ROOT = os.getuid() == 0

LET_THROUGH: dict[str, frozenset[str]] = {
    "landlock": frozenset({"list_the_secrets_folder", "git_hooks", *(["become_root"] if _ROOT else [])}),
    "podman": frozenset({"write_system", *(["become_root"] if _ROOT else [])}),
}
"""Hostile programs that a rung does not hold. (Root cannot become root: it is. A container's /dev is its own.)"""

NOT_WORKING: dict[str, frozenset[str]] = {
    "landlock": frozenset(
        {
            *("process_pool", "multiprocessing_spawn_and_queue", "shared_memory", "semaphores_and_locks"),
            *("web_server_and_client", "asyncio_server", "unix_sockets_and_udp", "pseudo_terminal"),
            *("who_and_where", "links_modes_and_locks", "shell_script", "compiler"),
        }
    ),
    "podman": frozenset({"who_and_where"} if _ROOT else ()),
}
"""Ordinary programs that a weaker rung cannot run: Landlock has no sockets, no shared memory and no modes
of files; in a container root is called root."""


def expect(request: pytest.FixtureRequest, rung: str, name: str, known: dict[str, frozenset[str]]) -> None:
    """Marks what is known not to hold, strictly: should it hold one day, the table is wrong."""
    if name in known.get(rung, ()):
        request.applymarker(pytest.mark.xfail(strict=True, reason=f"{rung} is weaker here"))


CONFINING = tuple(name for name in RUNGS if name != "unsafe")
"""Every rung that promises to hold a program."""

SLOW = frozenset({"podman"})
"""Rungs that take a second for each run."""


BY_HAND = tuple(
    pytest.param(name, marks=pytest.mark.torture) if name != "bubblewrap" else pytest.param(name)
    for name in CONFINING
)
"""The same for long suites: weaker rungs than the first are only run through them by hand."""

QUICK = tuple(
    pytest.param(name, marks=pytest.mark.torture) if name in SLOW else pytest.param(name) for name in RUNGS
)
"""All of them for short suites; a slow one only by hand."""
