"""The first page: keys are checked and stored, a model is fetched with its progress, and a folder is chosen."""

import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from cli.test_download import hub, weights
from models.file_server import CONTENT, FileServer, files_served
from playwright.sync_api import Page, expect
from scenarios.folders.chats import repository
from web.conftest import enter
from web.serving import Web
from web.test_views import check_access

from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock

SECRET = "sk-secret-0123456789"


@pytest.fixture
def server() -> Iterator[FileServer]:
    """It answers with half of a model and then falls silent, until it is told otherwise."""
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(files_served({"/tiny.gguf": CONTENT})) as files,
    ):
        files.held = len(CONTENT) // 2
        yield files


@pytest.fixture
def provider() -> Iterator[str]:
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serve_mock(in_order(Reply(text="")), key=SECRET)) as mock,
    ):
        yield f"{mock.url}/v1"


@pytest.fixture
def newcomer(tmp_path: Path, server: FileServer, provider: str) -> Iterator[Web]:
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    (home / "config" / "models.yaml").write_bytes(weights(hub(server.url)))
    repository(tmp_path / "project", {"one.py": "one = 1\n"})
    web = Web(home, variables={"OPENAI_BASE_URL": provider})
    yield web
    web.stop()


def test_a_newcomer_gets_a_model_and_a_folder_without_leaving_the_page(
    page: Page, newcomer: Web, axe: str, tmp_path: Path
) -> None:
    enter(page, newcomer)
    page.locator("summary", has_text="Model").click()
    key = page.get_by_label("API key for openai")
    key.fill("sk-wrong")
    page.get_by_role("button", name="Check and store").click()
    expect(page.get_by_text("openai refused the key")).to_be_visible()
    key.fill(SECRET)
    page.get_by_role("button", name="Check and store").click()
    expect(page.get_by_text("readable only by you; openai accepts it")).to_be_visible()
    expect(key).to_have_value("")
    page.get_by_role("button", name="Download local/tiny").click()
    expect(page.get_by_text(re.compile("Downloading tiny: .* of"))).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.locator("summary", has_text="Folder").click()
    page.get_by_role("button", name="project", exact=True).click()
    page.get_by_role("button", name="Work in project (a repository)").click()
    expect(page.locator("summary", has_text="Folder")).to_contain_text(str(tmp_path / "project"))
    check_access(page, axe)
    page.get_by_label("Goal").fill("add two numbers")
    page.get_by_label("Goal").press("Enter")
    expect(page.get_by_role("region", name="The team asks")).to_be_visible()
    chat = page.url.rpartition("/")[2]
    assert newcomer.ask("GET", f"/api/chats/{chat}", headers={"Cookie": newcomer.cookie}).json()[
        "workspace"
    ] == str(tmp_path / "project")


@pytest.mark.parametrize("folder", ["relative", "/does/not/exist", "/\0"])
def test_a_chat_works_in_no_folder_that_is_not_there(shared: Web, folder: str) -> None:
    answer = shared.post("/api/chats", {"goal": "add two numbers", "folder": folder})
    assert answer.status == 400
    assert "there is no folder" in str(answer.json()["error"])


def test_a_folder_that_cannot_be_listed_is_said_so(shared: Web) -> None:
    answer = shared.ask("GET", "/api/folders?path=/does/not/exist", headers={"Cookie": shared.cookie})
    assert answer.status == 400
    assert "cannot be listed" in str(answer.json()["error"])
