"""AutoGen's own tests and its example of a distributed group chat on our runtime: long, by hand (`just torture`).

SEPTET_AUTOGEN names a checkout of microsoft/autogen at the tag python-v0.7.5; what is run is its own, as it is. Only
the names of its runtimes mean ours, by a plugin (`autogen_suite`), and in the example by an import.
"""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree
from typing import NamedTuple
from xml.etree import ElementTree as ET

import anyio
import pytest
from anyio.abc import Process
from cluster.test_replicas import free_ports

from septet.testing.replies import ReceivedRequest, Reply
from septet.testing.server import serve_mock

pytestmark = pytest.mark.torture
HERE = Path(__file__).parent
PACKAGES = (
    "autogen-agentchat==0.7.5",
    "autogen-ext[grpc]==0.7.5",
    "azure-identity",
    "openai<2",  # what its tests were written for
    "opentelemetry-sdk",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "tiktoken",
    "aiofiles",
    "pillow",
)
BY_DESIGN = {
    "test_agent_types_must_be_unique_multiple_workers": "processes may share a type",
    "test_duplicate_subscription": "processes may share a type",
    "test_disconnected_agent": "reads the private fields of AutoGen's host",
    "test_instance_factory_messaging": "wants the source that only its gRPC runtime gives topics in handlers",
}
"""Tests that our runtime fails, and why."""


class Suite(NamedTuple):
    package: str
    files: tuple[str, ...]
    passing: int
    options: tuple[str, ...] = ()


SUITES = {
    "runtime": Suite(
        "autogen-core",
        (
            "test_runtime",
            "test_routed_agent",
            "test_cancellation",
            "test_closure_agent",
            "test_intervention",
            "test_state",
            "test_subscription",
            "test_tool_agent",
        ),
        38,
    ),
    "group chats": Suite(
        "autogen-agentchat",
        (
            "test_group_chat",
            "test_group_chat_graph",
            "test_group_chat_nested",
            "test_group_chat_pause_resume",
            "test_magentic_one_group_chat",
            "test_sequential_routed_agent",
            "test_society_of_mind_agent",
        ),
        208,
    ),
    "distributed": Suite("autogen-ext", ("test_worker_runtime",), 10, ("--grpc",)),
}
"""All test files of its packages that make a runtime."""


@pytest.fixture(scope="module")
def checkout() -> Path:
    named = os.environ.get("SEPTET_AUTOGEN", "")
    if not named:
        pytest.skip("SEPTET_AUTOGEN does not name a checkout of microsoft/autogen")
    return Path(named).absolute() / "python"


@pytest.fixture(scope="module")
def python(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with AutoGen, its tests' packages, and this source."""
    folder = tmp_path_factory.mktemp("suite")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    found = folder / "bin" / "python"
    source = f"{HERE.parent.parent}[autogen]"
    for wanted in (
        ("-e", source, *PACKAGES),
        ("--no-deps", str(checkout / "packages" / "autogen-test-utils")),
    ):
        command = [str(found), "-m", "pip", "install", "-q", *wanted]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"what the suites need cannot be fetched ({made.stderr[-200:]})")
    return found


def run_suite(python: Path, folder: Path, suite: Suite, substitute: str, report: Path) -> Mapping[str, str]:
    """The outcomes by the files and names of the tests."""
    files = [f"tests/{name}.py" for name in suite.files]
    common = [
        "-p",
        "autogen_substitute",
        "-p",
        "no:cacheprovider",
        "-q",
        "--timeout",
        "30",
        f"--junitxml={report}",
    ]
    path = str(HERE / "autogen_suite")
    subprocess.run(
        [str(python), "-m", "pytest", *common, *suite.options, *files],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "SUBSTITUTE": substitute, "OPENAI_API_KEY": "unused"},
        capture_output=True,
        check=False,
    )
    outcomes: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        outcomes[f"{case.attrib['classname']}::{case.attrib['name']}"] = (
            "failed" if failed else "skipped" if "skipped" in kinds else "passed"
        )
    return outcomes


@pytest.mark.parametrize("name", SUITES)
def test_its_suites_pass_on_our_runtime(name: str, python: Path, checkout: Path, tmp_path: Path) -> None:
    suite = SUITES[name]
    outcomes = run_suite(
        python,
        checkout / "packages" / suite.package,
        suite,
        os.environ.get("SUBSTITUTE", "septet"),
        tmp_path / "report.xml",
    )
    failed = {test.partition("::")[2] for test, outcome in outcomes.items() if outcome == "failed"}
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    assert failed <= BY_DESIGN.keys(), f"{passed} pass, {sorted(failed)} fail"
    assert passed >= suite.passing, outcomes


UI = """
import asyncio
from _agents import UIAgent
from _types import MessageChunk
from _utils import get_serializers, load_config
from autogen_core import TypeSubscription
from septet.autogen import Runtime

async def show(chunk):
    print(f"{chunk.author}: {chunk.text}", flush=True)

async def main(config):
    runtime = Runtime(config.host.address)
    runtime.add_message_serializer(get_serializers([MessageChunk]))
    await runtime.start()
    await UIAgent.register(runtime, "ui_agent", lambda: UIAgent(show))
    await runtime.add_subscription(TypeSubscription(config.ui_agent.topic_type, "ui_agent"))
    await runtime.stop_when_signal()

asyncio.run(main(load_config()))
"""
"""What `run_ui.py` does, without its page, which is a program of another package."""
ITS_NAMES = "from autogen_ext.runtimes.grpc import "


class Thinker:
    """The model of everybody: the manager lets them speak in turn, the others say how much they know."""

    def __init__(self) -> None:
        self.chosen = 0

    def __call__(self, seen: ReceivedRequest) -> Reply:
        told = str(seen.messages[0]["content"])
        if "You are in a role play game" not in told:
            name = "writer" if "Writer" in told else "editor"
            return Reply(text=f"{name} knows {len(seen.messages) - 1}")
        self.chosen += 1
        return Reply(text=("Writer", "Editor", "Writer", "FINISH")[min(self.chosen, 4) - 1])


def with_our_runtime(sample: Path, folder: Path, address: str, port: int) -> None:
    """A copy in which the runtime's name is ours, and the configuration that its README asks for is filled in."""
    copytree(sample, folder)
    for path in folder.glob("*.py"):
        text = path.read_text()
        for name in ("GrpcWorkerAgentRuntimeHost", "GrpcWorkerAgentRuntime"):
            ours = name.replace("GrpcWorkerAgentRuntime", "Runtime")
            text = text.replace(f"{ITS_NAMES}{name}\n", f"from septet.autogen import {ours} as {name}\n")
        assert "runtimes.grpc" not in text
        path.write_text(text)
    config = (folder / "config.yaml").read_text()
    for old, new in (
        ("https://{your-custom-endpoint}.openai.azure.com", address),
        ('api_key: ""', 'api_key: "unused"'),
        ("port: 50060", f"port: {port}"),
    ):
        assert old in config
        config = config.replace(old, new)
    (folder / "config.yaml").write_text(config)
    (folder / "ui.py").write_text(UI)


@asynccontextmanager
async def programs(python: Path, folder: Path, *names: str) -> AsyncGenerator[dict[str, Process]]:
    environment = {**os.environ, "SEPTET_HOME": str(folder / "home"), "PYTHONUNBUFFERED": "1"}
    running: dict[str, Process] = {}
    try:
        for name in names:
            command = [str(python), name]
            running[name] = await anyio.open_process(command, cwd=folder, env=environment, stderr=None)
        yield running
    finally:
        for process in running.values():
            process.terminate()
            await process.aclose()


@pytest.mark.anyio
async def test_its_distributed_group_chat_runs_with_the_name_of_our_runtime(
    python: Path, checkout: Path, tmp_path: Path
) -> None:
    folder, thinker, shown = tmp_path / "sample", Thinker(), ""
    (port,) = free_ports(1)
    async with serve_mock(thinker) as server:
        address = server.url.removesuffix("/v1")
        with_our_runtime(checkout / "samples" / "core_distributed-group-chat", folder, address, port)
        files = (
            "run_host.py",
            "ui.py",
            "run_editor_agent.py",
            "run_writer_agent.py",
            "run_group_chat_manager.py",
        )
        async with programs(python, folder, *files) as running:
            ui = running["ui.py"].stdout
            assert ui is not None
            with anyio.fail_after(180):
                while "collaborating!" not in shown:
                    shown += (await ui.receive()).decode()
    lines = [line.partition(": ") for line in shown.splitlines()]
    said = {
        who: " ".join(text for who_says, _, text in lines if who_says == who) for who in ("Writer", "Editor")
    }
    assert " ".join(said["Writer"].split()) == "writer knows 3 writer knows 7"
    assert " ".join(said["Editor"].split()) == "editor knows 5"
