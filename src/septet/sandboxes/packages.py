"""Packages for a workspace: into an environment of its own, by an install that has a sandbox of its own."""

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anyio import to_thread
from msgspec.structs import replace

from septet.domain.runs import MEBIBYTE, Job, Limits, RunResult
from septet.domain.values import Value
from septet.errors import SandboxFailed
from septet.ports import Sandbox
from septet.sandboxes.distributions import distribution_of
from septet.sandboxes.environment import environment
from septet.sandboxes.networks import relayed
from septet.sandboxes.proxies import proxy

Policy = Literal["off", "ask", "auto"]
Approve = Callable[[tuple[str, ...]], Awaitable[bool]]
"""Asks the person whether these distributions may be installed."""

PYPI = frozenset({"pypi.org", "files.pythonhosted.org"})
_LIMITS = Limits(
    seconds=600.0, cpu_seconds=600.0, memory=2048 * MEBIBYTE, file_size=4096 * MEBIBYTE, disk=8192 * MEBIBYTE
)


class Provision(Value):
    """What became of the wish for packages; `refused` gives the reason where nothing was installed."""

    installed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    refused: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Packages:
    """The environment of one workspace, in a folder of its own; programs only read it."""

    folder: Path
    sandbox: Sandbox
    policy: Policy = "off"
    hosts: frozenset[str] = PYPI
    index: str = ""

    def applied(self, job: Job) -> Job:
        """The job with the environment's interpreter and packages, if there is an environment yet."""
        if not (self.folder / "bin" / "python").exists():
            return job
        path = f"{self.folder / 'bin'}{os.pathsep}{environment(job.environment)['PATH']}"
        variables = {**job.environment, "PATH": path, "VIRTUAL_ENV": str(self.folder)}
        return replace(job, environment=variables, readable=(*job.readable, str(self.folder)))

    async def provide(self, imports: Iterable[str], approve: Approve | None = None) -> Provision:
        """Install what provides these import names, as the policy says. A name without a known one is told."""
        found = {name: distribution_of(name) for name in imports}
        unknown = tuple(name for name, distribution in found.items() if distribution is None)
        wanted = tuple(sorted({distribution for distribution in found.values() if distribution}))
        if not wanted:
            return Provision(unknown=unknown)
        if refused := await self._refusal(wanted, approve):
            return Provision(unknown=unknown, refused=refused)
        result = await self._install(wanted)
        installed = wanted if result.succeeded else ()
        refused = "" if result.succeeded else "the installer failed"
        return Provision(
            installed=installed, unknown=unknown, refused=refused, output=result.stdout + result.stderr
        )

    async def _refusal(self, wanted: tuple[str, ...], approve: Approve | None) -> str:
        if self.policy == "off":
            return "installing is off"
        if self.policy == "ask" and (approve is None or not await approve(wanted)):
            return "the person did not agree"
        return ""

    async def _install(self, wanted: tuple[str, ...]) -> RunResult:
        await to_thread.run_sync(self._prepare)
        cache_folder = self.folder / ".cache"
        with tempfile.TemporaryDirectory(prefix="septet-proxy-") as place:
            socket = Path(place) / "proxy"
            async with proxy(socket, self.hosts):
                job = Job(
                    command=relayed(socket, "", *self._command(wanted, cache_folder)),
                    workspace=str(self.folder),
                    limits=_LIMITS,
                    environment={"UV_OFFLINE": "0", "PIP_NO_INDEX": "0", "UV_NO_CONFIG": "1"},
                    readable=(place,),
                )
                result = await self.sandbox.run(job)
        await to_thread.run_sync(lambda: shutil.rmtree(cache_folder, ignore_errors=True))
        return result

    def _command(self, wanted: tuple[str, ...], cache_folder: Path) -> list[str]:
        index = ["--default-index", self.index] if self.index else []
        options = ["--only-binary", ":all:", "--link-mode", "copy", "--cache-dir", str(cache_folder)]
        python = str(self.folder / "bin" / "python")
        return [_uv(), "pip", "install", "--python", python, *options, *index, *wanted]

    def _prepare(self) -> None:
        """An environment that also sees what Septet itself brings for programs, such as pytest."""
        if (self.folder / "bin" / "python").exists():
            return
        import venv

        venv.EnvBuilder(symlinks=True, with_pip=False).create(self.folder)
        inside = sysconfig.get_path("purelib", vars={"base": str(self.folder), "platbase": str(self.folder)})
        Path(inside, "septet.pth").write_text(sysconfig.get_path("purelib") + "\n")


def _uv() -> str:
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}")
    if found is None:
        raise SandboxFailed("uv is not installed beside Septet", "pip install uv")
    return found
