"""A server, and a browser that notices every complaint of the page."""

import shutil
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright
from web.serving import Web

SOURCES = Path(__file__).parent.parent.parent / "web"
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SLOW = 90_000
"""Milliseconds until a test gives up: other things run on this machine too."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    served = Web(tmp_path / "home")
    yield served
    served.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """For the tests of a module that only add chats to it."""
    served = Web(tmp_path_factory.mktemp("shared") / "home")
    yield served
    served.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("the system has no Chromium (Debian: apt install chromium)")
    expect.set_options(timeout=SLOW)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    """A desktop page. A test fails when its page logs an error."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(SLOW)
    opened = context.new_page()
    troubles = listen(opened)
    yield opened
    context.close()
    assert not troubles


def scroll_up(page: Page, by: str = "box.scrollTop") -> None:
    """As a person does, with a wheel: what only moves by itself does not end the following of a talk."""
    page.locator(".talk .scroll").evaluate(
        f"box => {{ box.dispatchEvent(new WheelEvent('wheel')); box.scrollTop = Math.max(0, box.scrollTop - {by}) }}"
    )


def enter(page: Page, web: Web, path: str = "/") -> None:
    """A browser that has shown the token before."""
    name, _, value = web.cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": web.origin}])
    page.goto(web.origin + path)


LOST_MODULE = "Failed to fetch dynamically imported module"


SERVER_GONE = ("ERR_CONNECTION_RE", "ERR_CONTENT_LENGTH_MISMATCH", "ERR_EMPTY_RESPONSE")
"""Before a request, in the middle of an answer, before it."""


def listen(page: Page) -> list[str]:
    """What goes wrong in a page: errors, warnings and broken rules; a server that is away is no fault."""
    troubles: list[str] = []

    def logged(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(gone in message.text for gone in SERVER_GONE):
            troubles.append(f"{message.type}: {message.text}")

    def failed(error: Error) -> None:
        if LOST_MODULE not in str(error):  # one that the server does not have is an error of the console, too
            troubles.append(str(error))

    page.on("console", logged)
    page.on("pageerror", failed)
    return troubles


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's libraries: those of the checkout, else fetched as the lock file says."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not here: the built page cannot be compared")
    if (SOURCES / "node_modules" / "esbuild").exists():
        return SOURCES
    copy = tmp_path_factory.mktemp("npm") / "web"
    shutil.copytree(SOURCES, copy)
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts"], cwd=copy, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"npm cannot fetch the page's libraries ({done.stderr.strip()[-200:]})")
    return copy


@pytest.fixture(scope="session")
def axe(modules: Path) -> str:
    return (modules / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
