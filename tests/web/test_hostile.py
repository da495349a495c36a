"""A hostile reply does nothing: no script, no link that acts, no fake control, no page that breaks."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from web.conftest import enter, scroll_up
from web.seeding import over, said, seed, started
from web.serving import Web

from septet.domain.events import PersonSpoke, PlanProposed, RunFinished
from septet.domain.plans import CommandSucceeds, Plan, Requirement
from septet.domain.runs import RunResult

EVIL = "window.broken = (window.broken || 0) + 1"
REPLIES = [
    f"<script>{EVIL}</script>",
    f'<img src=x onerror="{EVIL}"> <svg onload="{EVIL}"></svg> <iframe srcdoc="<script>{EVIL}</script>"></iframe>',
    f"[click me](javascript:{EVIL.replace(' ', '%20')}) [data](data:text/html,<script>{EVIL}</script>)",
    f'<a href="JaVaScRiPt:{EVIL}">x</a> <form action="/api/chats"><button>Approve</button></form>',
    '<div class="ask"><button id="approve" class="primary">Approve</button></div>',
    '<p style="position:fixed;inset:0;background:red">covered</p> ![x](https://elsewhere.example/pixel.png)',
    '<style>body{display:none}</style><link rel="stylesheet" href="//elsewhere.example/x.css">',
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={EVIL}&gt;">',
    f"```html\n<script>{EVIL}</script>\n```",
    f'```x" onclick="{EVIL}\nfence\n```',
    "pay \u202egro.live//:ptth\u202c now \u2066hidden\u2069 \u200b\ufeff",
    "x" * 2_000_000,
    "\n".join(["| a | b |", "|---|---|", *["| 1 | <script>" + EVIL + "</script> |"] * 50]),
    "<" * 5000 + "[" * 5000 + "*" * 5000,
    "\x1b[31mred\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07 \x00\x08",
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    home = tmp_path_factory.mktemp("hostile") / "home"
    evil = REPLIES[0] + REPLIES[1]
    plan = Plan(items=(Requirement(id="P1", text=evil, check=CommandSucceeds(command=evil)),), run=evil)
    result = RunResult(
        exit_code=0, stdout="".join(REPLIES[:8]) + REPLIES[14], stderr="\x1b[38;2;1;2;3mtrue\x1b[0m colour"
    )
    seed(
        home,
        "hostile",
        [
            started(evil, home),
            *(event for text in REPLIES for event in said("planner", text)),
            PlanProposed(plan=plan),
            RunFinished(id=evil, purpose="check", about=evil, command=evil, tree="", result=result),
            PersonSpoke(text=evil),
            over(),
        ],
    )
    web = Web(home)
    yield web
    web.stop()


def test_hostile_replies_do_nothing(page: Page, hostile: Web) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    enter(page, hostile, "/chat/hostile")
    expect(page.get_by_role("article").first).to_be_visible()
    walk_through(page)
    for tab in range(1, 8):
        page.keyboard.press(str(tab))
        expect(page.get_by_role("tabpanel")).to_be_visible()
    assert page.evaluate("window.broken") is None
    assert [url for url in asked if not url.startswith((hostile.origin, "data:image/svg"))] == []


def walk_through(page: Page) -> None:
    """Every entry is drawn once, and none of them holds anything that acts."""
    feed = page.locator(".talk .scroll")
    seen: set[str] = set()
    while True:
        ids: list[str] = page.evaluate("[...document.querySelectorAll('article')].map(one => one.id)")
        for selector in (
            "script",
            "iframe",
            "form",
            "style",
            "link",
            "img",
            "[onclick]",
            "[onerror]",
            "[style]",
        ):
            assert page.locator(f".markdown {selector}").count() == 0, selector
        assert page.locator(".talk .markdown button:not(.copy)").count() == 0
        links: list[str] = page.evaluate("[...document.querySelectorAll('.markdown a')].map(a => a.protocol)")
        assert set(links) <= {"http:", "https:"}
        text = feed.inner_text()
        assert "\u202e" not in text
        assert "\u2066" not in text
        if set(ids) <= seen:
            return
        seen |= set(ids)
        scroll_up(page, "box.clientHeight / 2")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_hidden_directions_are_shown(page: Page, hostile: Web) -> None:
    enter(page, hostile, "/chat/hostile#m23")
    expect(page.locator("#m23")).to_contain_text("⟨U+202E⟩")


def test_a_generated_page_and_picture_run_nothing(hostile: Web) -> None:
    import anyio.from_thread

    from septet.settings.home import Home
    from septet.wiring.session import open_session

    home = hostile.home

    async def keep(content: bytes) -> str:
        async with open_session(Home(data=home, config=home, cache=home)) as session:
            return await session.blobs.put(content)

    bad = f"<html><body><h1>made</h1><script>{EVIL}</script></body></html>".encode()
    picture = f'<svg xmlns="http://www.w3.org/2000/svg"><script>{EVIL}</script></svg>'.encode()
    with anyio.from_thread.start_blocking_portal() as portal:
        addresses = [portal.call(keep, content) for content in (bad, picture)]
    for address, name in zip(addresses, ("page.html", "picture.svg"), strict=True):
        answer = hostile.ask("GET", f"/artefacts/{address}/{name}", headers={"Cookie": hostile.cookie})
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "allow-scripts" not in answer.headers["content-security-policy"]
