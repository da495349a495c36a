"""Each main view: looked at by axe, on a desktop and on a phone, light and dark, and kept as a picture."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from web.conftest import SLOW, listen
from web.seeding import over, said, seed, started
from web.serving import Web

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).parent.parent.parent
IMAGES = ROOT / "docs" / "images"
TABS = ("Plan", "Code", "Run", "Output", "Files", "Cost", "Log")
PHONE = ViewportSize(width=390, height=844)


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, str]]:
    """The clock demo, run to its end."""
    web = Web(tmp_path_factory.mktemp("views") / "home")
    chat = str(web.post("/api/chats", {"demo": "clock", "yes": True}).json()["chat"])
    web.until(chat, "chat_ended")
    yield web, chat
    web.stop()


def enter(page: Page, web: Web, path: str) -> None:
    """A browser that has shown the token before."""
    name, _, value = web.cookie.partition("=")
    page.context.add_cookies([{"name": name, "value": value, "url": web.origin}])
    page.goto(web.origin + path)


def keep(page: Page, name: str) -> None:
    """Pictures for the docs, made anew when asked for."""
    if os.environ.get("SEPTET_PICTURES"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        page.evaluate(HIDE_MACHINE)
        page.screenshot(path=IMAGES / f"web-{name}.png")


HIDE_MACHINE = """
document.querySelectorAll('.on-disk').forEach(one => { one.style.visibility = 'hidden' })
document.querySelectorAll('details[open]').forEach(one => { one.open = false })
"""
"""Paths of the machine that made a picture are nobody's business; program output may name some."""


@pytest.fixture(scope="module")
def axe(modules: Path) -> str:
    return (modules / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def check_access(page: Page, axe: str) -> None:
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in serious]


def settle(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_first_page(page: Page, clock: tuple[Web, str], axe: str) -> None:
    enter(page, clock[0], "/")
    expect(page.get_by_role("button", name="Demo: clock")).to_be_visible()
    expect(page.get_by_label("Model")).to_have_attribute("placeholder", re.compile("scripted:"))
    settle(page)
    check_access(page, axe)
    keep(page, "home")


def test_each_tab_of_the_workbench(page: Page, clock: tuple[Web, str], axe: str) -> None:
    web, chat = clock
    enter(page, web, f"/chat/{chat}")
    expect(page.get_by_text("✓ Done: all checks passed")).to_be_visible()
    for number, name in enumerate(TABS, start=1):
        page.keyboard.press(str(number))
        expect(page.get_by_role("tab", selected=True)).to_contain_text(name)
        settle(page)
        check_access(page, axe)
        keep(page, name.lower())
    page.keyboard.press("2")
    page.get_by_role("button", name="Side by side").click()
    expect(page.locator(".d2h-file-side-diff").first).to_be_visible()
    settle(page)
    check_access(page, axe)
    keep(page, "changes")


def test_dark(page: Page, clock: tuple[Web, str], axe: str) -> None:
    web, chat = clock
    page.emulate_media(color_scheme="dark")
    enter(page, web, f"/chat/{chat}/v2")
    page.get_by_role("button", name="Changes since v1").click()
    expect(page.locator("ins").first).to_be_visible()
    settle(page)
    check_access(page, axe)
    keep(page, "dark")


def test_on_a_phone(browser: Browser, clock: tuple[Web, str], axe: str) -> None:
    web, chat = clock
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    context.set_default_timeout(SLOW)
    page = context.new_page()
    troubles = listen(page)
    enter(page, web, f"/chat/{chat}")
    expect(page.get_by_text("✓ Done: all checks passed")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    settle(page)
    check_access(page, axe)
    keep(page, "phone")
    page.get_by_role("button", name="Work").click()
    expect(page.get_by_role("tab", name=re.compile("Plan"))).to_be_visible()
    page.get_by_role("tab", name=re.compile("Output")).click()
    settle(page)
    keep(page, "phone-work")
    page.get_by_role("button", name="Chats", exact=True).click()
    page.get_by_role("link", name=re.compile(chat)).click()
    expect(page.get_by_role("textbox", name="Message to the team")).to_be_visible()
    context.close()
    assert not troubles


def test_waiting_for_approval(page: Page, clock: tuple[Web, str], axe: str) -> None:
    web, _ = clock
    chat = str(web.post("/api/chats", {"demo": "bars"}).json()["chat"])
    enter(page, web, f"/chat/{chat}")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    settle(page)
    check_access(page, axe)
    keep(page, "approval")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("article.runs")).to_be_visible()
    keep(page, "running")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("✗ Stopped by the person")).to_be_visible()


def test_twenty_thousand_events_open_at_once_and_draw_a_few(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    talk = (
        event for number in range(9_999) for event in said("planner", f"message {number} " + "word " * 20)
    )
    seed(home, "long", [started("a long chat", home), *talk, over()])
    web = Web(home)
    try:
        enter(page, web, "/")
        expect(page.get_by_role("link", name=re.compile("long"))).to_be_visible()
        page.evaluate(OPENING)
        took = page.evaluate("window.opened")
        print(f"20,000 events were open after {took:.0f} ms")  # noqa: T201  # a figure for docs/web.md
        expect(page.get_by_text("message 9998")).to_be_attached()
        assert page.get_by_role("article").count() < 100
        page.locator(".talk .scroll").evaluate("box => { box.scrollTop = 0 }")
        expect(page.get_by_text("message 0 word")).to_be_visible()
        page.keyboard.press("7")
        expect(page.get_by_text("20000 of 20000")).to_be_visible()
    finally:
        web.stop()


OPENING = """() => new Promise(done => {
  const began = performance.now();
  document.querySelector('.chats a[href="/chat/long"]').click();
  const look = () => {
    if (document.body.innerText.includes('Stopped by the person')) {
      window.opened = performance.now() - began;
      done();
    } else requestAnimationFrame(look);
  };
  look();
})"""
