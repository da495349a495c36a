"""Real chats driven through a real browser: from the first token to done, and through every kind of break."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import anyio.from_thread
import pytest
from cli.commands import Septet
from msgspec.structs import replace
from playwright.sync_api import Page, expect
from scenarios.folders.chats import ACCEPT, code, git, plan, repository, script
from scenarios.test_ask import TEAM as TOOLED
from scenarios.test_ask import script as question_script
from team.states import planned, version
from web.conftest import SLOW, enter, listen
from web.seeding import over, said, seed, started
from web.serving import SCRIPTS, Web
from web.test_views import stop

from septet.domain.events import ChatEnded, PersonSpoke, RunFinished, RunStarted
from septet.domain.messages import Usage
from septet.domain.runs import RunResult
from septet.domain.teams import Budget
from septet.stores.blobs import FolderBlobs
from septet.testing.replies import Reply, in_order
from septet.testing.server import serve_mock
from septet.ways.table import TEAMS

PLAN = "1. It prints hello\n   check: command python hello.py => hello\nrun: python hello.py\n"
CODE = (
    "A program that says hello, and a test that would notice if it did not.\n\n"
    '```python hello.py\ndef word():\n    return "hello"\n\n\nif __name__ == "__main__":\n    print(word())\n```\n\n'
    '```python test_hello.py\nfrom hello import word\n\n\ndef test_word():\n    assert word() == "hello"\n```\n'
)


@pytest.fixture
def stalling(tmp_path: Path) -> Iterator[Web]:
    """A team whose model stalls in the middle of the coder's first answer."""
    replies = (
        Reply(text=PLAN),
        Reply(text=CODE, usage=Usage(prompt=900, completion=80)),
        Reply(text=CODE, usage=Usage(prompt=900, completion=80)),
        Reply(text="verdict: accept\n"),
    )
    with anyio.from_thread.start_blocking_portal() as portal:
        model = serve_mock(in_order(*replies), faults={2: "stall midway"})
        with portal.wrap_async_context_manager(model) as server:
            served = Web(tmp_path / "home", f"url:{server.url}#mock")
            yield served
            served.stop()


def begin(page: Page, web: Web, goal: str = "add two numbers") -> None:
    enter(page, web)
    page.get_by_label("Goal").fill(goal)
    page.get_by_role("button", name="Start").click()


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve", exact=True).click()


def test_a_chat_from_its_goal_to_done(page: Page, shared: Web) -> None:
    begin(page, shared)
    expect(page).to_have_url(re.compile("/chat/add-two-numbers-"))
    expect(page.get_by_role("region", name="The team asks")).to_be_visible()
    expect(page.get_by_role("tabpanel")).to_contain_text("not approved yet")
    approve(page)
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_be_visible()
    expect(page.get_by_role("tab", name="Plan 2/2")).to_be_visible()
    expect(page.get_by_role("heading", name="✗ To be revised")).to_be_attached()
    page.get_by_role("tab", name=re.compile("Code")).click()
    page.get_by_role("button", name="Changes since v1").click()
    expect(page.locator("ins").first).to_have_text("+")
    page.get_by_role("button", name="v1", exact=True).click()
    expect(page).to_have_url(re.compile("/v1$"))
    expect(page.locator(".source")).to_contain_text("return a - b")


def test_what_the_person_says_changes_the_plan_and_the_log_agrees(page: Page, shared: Web) -> None:
    begin(page, shared)
    page.get_by_role("button", name="Edit", exact=True).click()
    field = page.get_by_label(re.compile("^The plan"))
    field.fill(field.input_value().replace("gives the sum", "gives the sum of two numbers"))
    page.get_by_role("button", name="Save the plan").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("gives the sum of two numbers")
    approve(page)
    page.get_by_label("Message to the team").fill("keep it short")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").filter(has_text="keep it short")).to_be_visible()
    approve(page)  # the planner has looked at the wish, and says again what the person had changed
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_be_visible()
    chat = page.url.rpartition("/")[2]
    log = page.request.get(f"{shared.origin}/api/chats/{chat}/events").text()
    assert log.index("gives the sum of two numbers") < log.index("plan_approved") < log.index("keep it short")


def test_tokens_appear_while_they_are_made_and_a_reload_loses_none(page: Page, stalling: Web) -> None:
    begin(page, stalling, "say hello")
    approve(page)
    bubble = page.locator(".entry.live", has_text="coder")
    expect(bubble.locator(".streaming")).to_contain_text("A program that says hello")
    expect(bubble.locator(".streaming .hljs-keyword").first).to_have_text("def")
    page.get_by_label("Message to the team").fill("be brief")
    page.keyboard.press("Enter")
    expect(page.locator("article.person", has_text="be brief")).to_contain_text("queued for the next turn")
    before = bubble.locator(".streaming").inner_text()
    page.reload()
    expect(bubble.locator(".streaming")).to_have_text(before, use_inner_text=True)
    assert len(before) < len(CODE)
    expect(page.get_by_role("article")).to_have_count(4)


def test_two_tabs_agree(page: Page, stalling: Web) -> None:
    other = page.context.new_page()
    troubles = listen(other)
    begin(page, stalling, "say hello")
    expect(page.get_by_role("region", name="The team asks")).to_be_visible()
    other.goto(page.url)
    other.get_by_role("button", name="Approve", exact=True).click()
    for tab in (page, other):
        expect(tab.get_by_role("region", name="The team asks")).to_have_count(0)
        expect(tab.locator(".entry.live .streaming")).to_contain_text("A program that says hello")
    stop(page)
    for tab in (page, other):
        expect(tab.get_by_text("✗ Stopped by the person")).to_be_visible()
        expect(tab.locator(".entry.live")).to_have_count(0)
    assert not troubles


def test_a_killed_server_comes_back_and_the_chat_goes_on(page: Page, stalling: Web) -> None:
    begin(page, stalling, "say hello")
    approve(page)
    expect(page.locator(".streaming")).to_contain_text("A program that says hello")
    stalling.kill()
    expect(page.get_by_text("The connection is lost")).to_be_visible()
    stalling.restart()
    page.get_by_role("button", name="Resume here").click()
    expect(page.get_by_text("✓ Done, all checks passed")).to_be_visible()
    names = page.locator("article .name").all_inner_texts()
    assert names == ["you", "planner", "you", "coder", "runner", "reviewer", "septet"]


@pytest.mark.torture
def test_a_question_survives_a_restart_of_the_server(page: Page, web: Web) -> None:
    begin(page, web)
    expect(page.get_by_role("region", name="The team asks")).to_be_visible()
    web.kill()
    web.restart()
    approve(page)
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_be_visible()


def test_step_mode_asks_before_every_turn(page: Page, stalling: Web) -> None:
    page.goto(stalling.link)
    page.get_by_label("Goal").fill("say hello")
    page.locator("summary", has_text="Options").click()
    page.get_by_label("Step mode").check()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Next: the planner writes the plan")).to_be_visible()
    for speaker in ("planner",):
        page.get_by_role("button", name="Do it").click()
        expect(page.get_by_role("article").filter(has_text=speaker).first).to_be_visible()
    approve(page)
    expect(page.get_by_text("Take one more step?")).to_be_visible()
    expect(page.locator("article .name", has_text="coder")).to_have_count(0)


def test_a_running_chat_is_paused_stepped_and_resumed(page: Page, shared: Web) -> None:
    begin(page, shared)
    approve(page)
    page.get_by_role("button", name="Pause", exact=True).click()
    controls = page.get_by_role("group", name="Controls")
    expect(controls.get_by_role("button", name="Step")).to_be_visible()
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_have_count(0)
    expect(page.locator(".chip")).to_have_text("paused")
    expect(page.get_by_text("at work")).to_have_count(0)
    before = page.get_by_role("article").count()
    controls.get_by_role("button", name="Step").click()
    expect(page.get_by_role("article").nth(before)).to_be_visible()
    expect(controls.get_by_role("button", name="Step")).to_be_visible()
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_have_count(0)
    controls.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_be_visible()


def test_everything_by_keyboard(page: Page, web: Web) -> None:
    page.goto(web.link)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("approve the plan")
    page.keyboard.press("Escape")
    page.get_by_label("Goal").fill("add two numbers")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Start").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="The team asks")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_be_visible()
    page.keyboard.press("3")
    expect(page.get_by_role("tab", name=re.compile("Run"))).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(page.locator("article:focus")).to_have_count(1)
    page.keyboard.press("/")
    page.keyboard.type("subtracts")
    expect(page.get_by_role("list", name="Found").get_by_role("listitem").first).to_contain_text("subtracts")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


ONCE_MORE = """\
- role: coder
  say: Once more, for what was said meanwhile.
  files:
    notes.txt: The minus was minded.
- role: reviewer
  say: |
    verdict: accept
"""


def test_an_unfinished_stream_of_another_program_is_watched_and_steered(
    page: Page, shared: Web, tmp_path: Path
) -> None:
    """The command line conducts; the page watches and speaks on the same chat, at whatever moment it gets to it."""
    from cli.commands import Septet

    script = tmp_path / "small.yaml"
    script.write_text((SCRIPTS / "small.yaml").read_text() + ONCE_MORE)
    septet = Septet(shared.home)
    enter(page, shared)
    model = f"scripted:{script}"
    process = septet.start("run", "add two numbers", "-m", model, "--yes", "--json", "-n", "adding")
    page.get_by_role("link", name=re.compile("adding")).click()
    page.get_by_label("Message to the team").fill("mind the minus")
    page.keyboard.press("Enter")
    events, complaint = process.communicate(timeout=SLOW)
    assert process.returncode == 0, complaint
    expect(page.get_by_text("✓ Done; only the coder's own tests show P1")).to_be_visible()
    spoken = [
        stored["seq"]
        for stored in map(json.loads, events.splitlines())
        if stored.get("type") == "septet.person_spoke"
    ]
    page.goto(f"{shared.origin}/chat/adding#m{spoken[-1]}")  # the feed draws only what can be seen
    expect(page.locator("article.person", has_text="mind the minus")).to_be_visible()


def test_the_person_is_asked_about_packages(page: Page, tmp_path: Path) -> None:
    web = Web(tmp_path / "home", f"scripted:{SCRIPTS / 'smile.yaml'}")
    begin(page, web, "a smile")
    approve(page)
    asked = page.get_by_role("region", name="The team asks")
    expect(asked).to_contain_text("Install emoji?")
    asked.get_by_role("button", name="No", exact=True).click()
    expect(page.get_by_text("Do not install emoji", exact=True)).to_be_visible()
    expect(page.get_by_text("✓ Done, all checks passed")).to_be_visible()
    web.stop()


def test_a_member_asks_in_the_middle_of_its_work_and_tools_are_a_line_each(
    page: Page, web: Web, tmp_path: Path
) -> None:
    (tmp_path / "team.yaml").write_text(TOOLED)
    septet = Septet(web.home)
    model = question_script(tmp_path, "German, please")
    begun = septet("run", "greet me", "-t", str(tmp_path / "team.yaml"), "-m", model, "-n", "c")
    assert begun.returncode == 4, begun.stderr
    enter(page, web, "/chat/c")
    approve(page)
    asked = page.get_by_role("region", name="The team asks")
    expect(asked).to_contain_text("The coder asks: In which language: English or German?")
    expect(page.get_by_text("write hello.py (2 lines)")).to_be_visible()
    box = page.get_by_placeholder("Your answer")
    box.fill("German, please")
    box.press("Enter")
    expect(page.get_by_text("✓ Done; the coder knew every example of P1 and P2")).to_be_visible()
    expect(page.get_by_text("In which language: English or German? → German, please")).to_be_visible()
    expect(asked).to_have_count(0)


def test_a_run_links_to_all_that_it_said_and_an_end_without_evidence_is_shown_as_a_claim(
    page: Page, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    blobs = FolderBlobs(home / "blobs")
    with anyio.from_thread.start_blocking_portal() as portal:
        address = portal.call(blobs.put, b"x" * 70_000 + b"middle" + b"x" * 70_000)
    blobs.close()
    result = RunResult(exit_code=0, stdout="x \u2026 x", stdout_blob=address, stderr="short")
    run = RunFinished(id="v1 run", purpose="run", command="python loud.py", tree="", result=result)
    seed(home, "loud", [started("be loud", home), run, over()])
    seed(home, "liar", [started("lie", home), ChatEnded(reason="done", detail="trust me", by="coder")])
    web = Web(home)
    try:
        page.goto(web.link)
        page.goto(f"{web.origin}/chat/loud")
        page.keyboard.press("3")
        links = page.get_by_role("tabpanel").get_by_role("link", name="all of its std")
        expect(links).to_have_count(1)
        with page.expect_popup() as opened:
            links.click()
        assert "middle" in opened.value.inner_text("body")

        page.goto(f"{web.origin}/chat/liar")
        expect(page.get_by_text("✗ claimed by coder, not proven (it was the planner's turn)")).to_be_visible()
        expect(page.get_by_text("all checks passed")).to_have_count(0)
    finally:
        web.stop()


def test_a_message_in_the_middle_of_a_run_leaves_one_run_and_an_unknown_chat_has_a_page(
    page: Page, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    begun = RunStarted(id="v1 tests", purpose="tests", command="python -m pytest", tree="")
    done = RunFinished(id="v1 tests", purpose="tests", command="", tree="", result=RunResult(exit_code=0))
    seed(home, "split", [started("x", home), begun, PersonSpoke(text="thinner"), done, over()])
    web = Web(home)
    try:
        page.goto(web.link)
        page.goto(f"{web.origin}/chat/split")
        expect(page.locator(".talk .run")).to_have_text("✓ tests exit 0 · 0.00 s")
        page.goto(f"{web.origin}/chat/nothing")
        expect(page.get_by_role("heading", name="There is no chat of this name")).to_be_visible()
        expect(page.get_by_role("navigation", name="Chats").get_by_role("link")).to_have_count(1)
        expect(page.get_by_label("Message to the team")).to_have_count(0)
    finally:
        web.stop()


def test_a_talk_ends_without_a_word_of_checks_and_a_wish_has_its_line(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    one_round = replace(TEAMS["writer-editor"], budget=Budget(rounds=1))
    talk = [replace(started("talk", home), team=one_round), *said("writer", "A poem.")]
    seed(home, "talk", [*talk, ChatEnded(reason="rounds", detail="the one round was spoken", by="writer")])
    seed(home, "old-talk", [*talk, ChatEnded(reason="done", detail="the one round was spoken")])
    wish = PersonSpoke(text="make it blue")
    seed(home, "wanting", [started("add", home), *planned()[1:], *version(1, "a"), wish, over()])
    web = Web(home)
    try:
        page.goto(web.link)
        for name in ("talk", "old-talk"):
            page.goto(f"{web.origin}/chat/{name}")
            expect(page.get_by_text("✓ rounds over (the one round was spoken)")).to_be_visible()
            expect(page.get_by_text("checks passed")).to_have_count(0)
        page.goto(f"{web.origin}/chat/wanting")
        page.keyboard.press("1")
        asked = page.get_by_role("tabpanel").get_by_role("listitem").filter(has_text="W1 make it blue")
        expect(asked).to_contain_text("no version since")
    finally:
        web.stop()


def test_a_delivery_is_shown_and_approved_file_by_file(page: Page, web: Web, tmp_path: Path) -> None:
    files = {"say.py": "def say():\n    return 'bad'\n", "other.py": "x = 1\n"}
    test = "from say import say\n\n\ndef test_say():\n    assert say() == 'good'\n"
    project = repository(tmp_path / "project", {**files, "test_say.py": test})
    written = {"say.py": files["say.py"].replace("bad", "good"), "other.py": "x = 2\n"}
    turns = (plan("", "tests test_say.py::test_say"), code(written), code(written))
    septet = Septet(web.home)
    septet("run", "good", "-n", "c", "-C", str(project), "-m", script(tmp_path, *turns, ACCEPT))
    enter(page, web, "/chat/c")
    approve(page)
    question = page.get_by_role("region", name="Delivery")
    expect(question).to_contain_text(f"Write this to {project}?")
    assert git(project, "status", "--porcelain", "-uno") == ""
    question.get_by_role("button", name="Show the change").nth(1).click()
    expect(page.get_by_role("region", name="Change of say.py").locator("ins").first).to_contain_text("good")
    question.get_by_label("other.py").uncheck()
    question.get_by_role("button", name="Write 1 of 2").click()
    expect(question.get_by_role("button", name="Write 0 of 1")).to_be_disabled()
    assert git(project, "status", "--porcelain", "-uno") == " M say.py\n"
    question.get_by_label("other.py").check()
    question.get_by_role("button", name="Write 1 of 1").click()
    expect(question).to_have_count(0)
    assert git(project, "status", "--porcelain", "-uno") == " M other.py\n M say.py\n"
