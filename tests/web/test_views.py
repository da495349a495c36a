"""Each main view: looked at by axe, on a desktop and on a phone, light and dark, and kept as a picture."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, ViewportSize, expect
from web.conftest import SLOW, enter, listen, scroll_up
from web.seeding import group_talk, over, said, seed, started
from web.serving import Web

from septet.domain.events import ToolCalled, VersionWritten
from septet.ways.table import TEAMS

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


def keep(page: Page, name: str) -> None:
    """Pictures for the docs, made anew when asked for."""
    if os.environ.get("SEPTET_PICTURES"):
        IMAGES.mkdir(parents=True, exist_ok=True)
        page.evaluate(HIDE_MACHINE)
        page.screenshot(path=IMAGES / f"web-{name}.png")


HIDE_MACHINE = """
document.querySelectorAll('.on-disk').forEach(one => { one.style.visibility = 'hidden' })
document.querySelectorAll('details[open]').forEach(one => { one.open = false })
document.querySelectorAll('.output').forEach(one => {
  one.textContent = one.textContent.replace(/\\/\\S+\\s*\\S*\\/work\\//g, 'work/')
})
"""
"""Paths of the machine that made a picture are nobody's business; program output may name some."""


def check_access(page: Page, axe: str) -> None:
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in serious]


def stop(page: Page) -> None:
    """Stop asks first; the words that nobody sent stay."""
    page.get_by_role("group", name="Controls").get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()


def settle(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_first_page(page: Page, clock: tuple[Web, str], axe: str) -> None:
    enter(page, clock[0], "/")
    expect(page.get_by_role("button", name="Demo: clock")).to_be_visible()
    expect(page.locator("summary", has_text="Model")).to_contain_text("scripted:small.yaml")
    expect(page.get_by_role("button", name="Demo: clock")).to_contain_text("current time on an analog")
    settle(page)
    check_access(page, axe)
    keep(page, "home")
    page.set_viewport_size({"width": 1024, "height": 768})
    page.emulate_media(color_scheme="dark")
    for options in page.locator("details.options > summary").all():
        options.click()
    expect(page.get_by_role("button", name="Check and store")).to_be_visible()
    settle(page)
    check_access(page, axe)
    assert not page.evaluate(CLIPPED.replace("'.part'", "'.home', '.picker', '.fields'"))


def test_each_tab_of_the_workbench(page: Page, clock: tuple[Web, str], axe: str) -> None:
    web, chat = clock
    enter(page, web, f"/chat/{chat}")
    expect(page.get_by_text("✓ Done, all checks passed")).to_be_visible()
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


def test_nothing_is_clipped_on_a_small_desktop_and_the_workbench_is_resized(
    page: Page, clock: tuple[Web, str], axe: str
) -> None:
    web, chat = clock
    page.set_viewport_size({"width": 1024, "height": 768})
    enter(page, web, f"/chat/{chat}")
    expect(page.locator("ins").first).to_contain_text("minute * 0.5")
    page.get_by_role("button", name="Side by side").click()
    expect(page.locator(".d2h-file-side-diff ins", has_text="minute * 0.5")).to_be_visible()
    for key in "123456":
        page.keyboard.press(key)
        settle(page)
        clipped = page.evaluate(CLIPPED)
        assert not clipped, (key, clipped)
    page.keyboard.press("2")
    settle(page)
    keep(page, "1024")
    divider = page.get_by_role("separator", name="Width of the workbench")
    before = page.locator(".work").bounding_box()
    divider.press("ArrowLeft")
    divider.press("ArrowLeft")
    expect(divider).to_have_attribute("aria-valuenow", "44")
    page.reload()
    expect(divider).to_have_attribute("aria-valuenow", "44")
    after = page.locator(".work").bounding_box()
    assert before
    assert after
    assert after["width"] > before["width"]
    page.get_by_role("button", name="v1", exact=True).click()
    expect(page.locator(".line-numbers")).to_contain_text("1\n2\n3")
    check_access(page, axe)


CLIPPED = """() => ['.side', '.side-head', '.tabs', '.costs', '.top', '.part', '.d2h-file-side-diff'].flatMap(
  name => [...document.querySelectorAll(name)]
    .filter(one => one.scrollWidth > one.clientWidth + 1)
    .map(one => `${name}: ${one.scrollWidth} > ${one.clientWidth}`))"""


def test_on_a_phone(browser: Browser, clock: tuple[Web, str], axe: str) -> None:
    web, chat = clock
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    context.set_default_timeout(SLOW)
    page = context.new_page()
    troubles = listen(page)
    enter(page, web, f"/chat/{chat}")
    expect(page.get_by_text("✓ Done, all checks passed")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    expect(page.locator(".chip")).to_have_text("done")
    expect(page.locator(".spending")).to_contain_text("$0.00")
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


LINES = (
    "Ada goes on",
    "To be known from now on:numbers may be empty",
    "No longer true:Python 2 is needed",
    "an empty list has a mean too from chat mean-k3f",
    "for: ZeroDivisionError: division by zero",
    "Not installed: numpy",
    "Install numpy, and whatever else this chat will want",
    "✓ Installed numpy in 3.2 s",
    "Mo goes on: nobody else could be made out",
    "✓ The task is resolved: the mean of 1 to 4 is 2.5",
    "✗ Ada was not asked: a budget would not do for the answer",
    "✗ An error stopped the work: openai refused the key (401): septet keys set openai",
)


def test_what_a_group_does_reads_as_a_talk(page: Page, clock: tuple[Web, str], axe: str) -> None:
    web, _ = clock
    seed(web.home, "group", group_talk(web.home))
    enter(page, web, "/chat/group")
    expect(page.get_by_text("✗ Stopped unfinished, a bound was reached")).to_be_visible()
    scroll_up(page)
    talk = page.get_by_role("feed")
    for line in LINES:
        talk.get_by_text(line.split(":")[0]).first.scroll_into_view_if_needed()
        expect(talk).to_contain_text(line)
    written = page.get_by_role("article", name=re.compile("^Ada,")).first
    expect(written).to_contain_text("coder")
    team = page.get_by_role("region", name="Team")
    expect(team).to_contain_text("Ada coder")
    expect(page.get_by_role("option", name="@Ada")).to_be_attached()
    settle(page)
    check_access(page, axe)


def test_a_talk_is_followed_while_what_is_at_its_end_shrinks_and_grows(
    page: Page, clock: tuple[Web, str]
) -> None:
    """A bubble goes and another comes before the page hears that it was moved: nobody has gone up."""
    web, _ = clock
    seed(web.home, "follow", group_talk(web.home))
    enter(page, web, "/chat/follow")
    expect(page.get_by_text("✗ Stopped unfinished, a bound was reached")).to_be_visible()
    page.locator(".talk .scroll").evaluate(
        """async box => {
            const tail = (height) => {
                const bubble = document.createElement('p');
                bubble.style.height = `${height}px`;
                box.append(bubble);
                return bubble;
            };
            const heard = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            const first = tail(400);
            box.scrollTop = box.scrollHeight;
            await heard();
            first.remove();
            box.scrollTop;  // the browser moves the box up
            tail(200);
            await heard();
        }"""
    )
    seed(web.home, "follow", said("coder", "the very last words"))
    expect(page.get_by_role("feed").get_by_text("the very last words")).to_be_visible()


def test_a_tool_is_shown_with_what_it_was_given_and_what_it_changed(
    page: Page, clock: tuple[Web, str]
) -> None:
    web, _ = clock
    seed(web.home, "tools", group_talk(web.home))
    enter(page, web, "/chat/tools")
    scroll_up(page)
    tools = page.locator("article.tools")
    expect(tools).to_contain_text("✓ write_file mean.py, def mean(numbers): return sum(numbers), 2")
    expect(tools).to_contain_text("new mean.py 64 B")
    expect(tools).to_contain_text("✗ lint not JSON")
    tools.get_by_text("write_file").click()
    expect(tools.get_by_role("definition").nth(1)).to_have_text("def mean(numbers):\n    return sum(numbers)")
    expect(tools.get_by_label("What write_file answered")).to_have_text("2 lines")


def test_a_proxy_that_is_a_model_does_not_speak_as_the_person(page: Page, clock: tuple[Web, str]) -> None:
    web, _ = clock
    begun = replace(started("what is the mean?", web.home), team=TEAMS["assistant"])
    asks = ToolCalled(
        id="1", by="proxy", name="SendMessage", arguments='{"recipient": "assistant", "message": "the mean?"}'
    )
    version = VersionWritten(number=1, files=(), tree="t")
    seed(web.home, "proxied", [begun, version, *said("proxy", "I ask the assistant."), asks])
    enter(page, web, "/chat/proxied")
    expect(page.get_by_role("article", name=re.compile("^proxy,")).first).to_contain_text(
        "I ask the assistant"
    )
    expect(page.locator("article.tools")).to_contain_text("asks assistant the mean?")
    expect(page.locator(".chip")).to_have_text("paused")
    expect(page.get_by_role("region", name="The team asks")).to_have_count(0)


def test_cost_shows_what_was_cached_and_who_may_use_how_much(
    page: Page, clock: tuple[Web, str], axe: str
) -> None:
    web, _ = clock
    seed(web.home, "budgets", group_talk(web.home))
    enter(page, web, "/chat/budgets")
    page.keyboard.press("6")
    expect(page.get_by_text("1.6k tokens in, 900 of them cached, 120 out")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("Ada"))
    expect(row.get_by_role("cell")).to_have_text(
        ["Ada coder", "seeded", "1", "1.5k", "900", "100", "4.0", "0.0200"]
    )
    budgets = page.get_by_role("region", name="Budgets")
    expect(budgets.get_by_role("listitem")).to_have_text(
        [
            "the chat 1.7k tokens / 10.0k tokens",
            "Ada 1.6k tokens / 2.0k tokens",
            "Ada $0.02 / $0.50",
            "Ada 4 s / 60 s",
        ]
    )
    settle(page)
    check_access(page, axe)


def test_waiting_for_approval(page: Page, clock: tuple[Web, str], axe: str) -> None:
    web, _ = clock
    chat = str(web.post("/api/chats", {"demo": "bars"}).json()["chat"])
    enter(page, web, f"/chat/{chat}")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    settle(page)
    check_access(page, axe)
    keep(page, "approval")
    draft = page.get_by_role("textbox", name="Message to the team")
    draft.fill("thinner bars")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("not sent: “thinner bars”")
    check_access(page, axe)
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.reload()
    expect(draft).to_have_value("thinner bars")
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Approve without it").click()
    expect(page.locator("article.runs")).to_be_visible()
    keep(page, "running")
    stop(page)
    expect(page.get_by_text("✗ Stopped by the person")).to_be_visible()


@pytest.mark.parametrize("count", [4_000, pytest.param(20_000, marks=pytest.mark.torture)])
def test_thousands_of_events_open_at_once_and_draw_a_few(page: Page, tmp_path: Path, count: int) -> None:
    home = tmp_path / "home"
    last = count // 2 - 2
    talk = (
        event for number in range(last + 1) for event in said("planner", f"message {number} " + "word " * 20)
    )
    seed(home, "long", [started("a long chat", home), *talk, over()])
    web = Web(home)
    try:
        enter(page, web, "/")
        expect(page.get_by_role("link", name=re.compile("long"))).to_be_visible()
        page.evaluate(OPENING)
        took = page.evaluate("window.opened")
        print(f"{count} events were open after {took:.0f} ms")  # noqa: T201  # a figure for docs/web.md
        expect(page.get_by_text(f"message {last} word")).to_be_attached()
        assert page.get_by_role("article").count() < 100
        scroll_up(page)
        expect(page.get_by_text("message 0 word")).to_be_visible()
        page.get_by_role("button", name="Jump to latest").click()
        expect(page.get_by_text(f"message {last} word")).to_be_visible()
        expect(page.get_by_role("button", name="Jump to latest")).to_have_count(0)
        page.keyboard.press("7")
        expect(page.get_by_text(f"{count} of {count}")).to_be_visible()
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
