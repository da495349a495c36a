"""Exports as files: a page that nothing hostile gets out of, and a zip that unpacks into one folder."""

import io
import re
import zipfile
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.chat.export import survey_text
from septet.chat.export_file import document, html_page, pack_zip
from septet.domain.events import (
    BaseSurveyed,
    ChatStarted,
    Event,
    ModelAnswered,
    PersonSpoke,
    Recorded,
    VersionWritten,
)
from septet.domain.files import FileRef, tree_of
from septet.domain.messages import Answer
from septet.errors import BadUsage, LogDamaged
from septet.stores.memory import MemoryBlobs
from septet.ways.table import TEAMS

pytestmark = pytest.mark.anyio

PARTS = "html head meta title style body header h1 h2 p main article strong time div pre details summary span"
TAGS = set(PARTS.split())
HOSTILE = (
    "</pre></div></title></style><script>alert(1)</script><img src=x onerror=alert(1)>"
    "<a href='javascript:alert(1)'>\"'&lt;\n```html\n</pre><iframe src=//evil.example>\n```\n\x1b]0;t\x07\u202e"
)


class Elements(HTMLParser):
    """What a browser would make of a page: elements and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")


def recorded(*events: Event) -> list[Recorded]:
    return [Recorded(chat="c", seq=seq, at=float(seq), event=event) for seq, event in enumerate(events, 1)]


def chat(text: str) -> list[Recorded]:
    answer = ModelAnswered(role=text[:60] or "coder", answer=Answer(text=text, model="m"))
    started = ChatStarted(goal=text or "x", team=TEAMS["iterate"], workspace="/w")
    return recorded(started, PersonSpoke(text=text), answer)


def check(text: str) -> Elements:
    elements = Elements(text)
    assert elements.tags <= TAGS
    assert set(elements.attributes) <= {"lang", "charset", "http-equiv", "content", "name", "class", "id"}
    named = {name for names in elements.attributes["class"] for name in names.split() if name[:2] != "c-"}
    assert named <= {"report", "outcome", "bad", "meta", "said", "person", "coder", "other"}
    return elements


@given(st.text() | st.text("<>&\"'`/=!-\n ascript").map(lambda text: text + HOSTILE))
def test_no_text_becomes_markup(text: str) -> None:
    check(html_page(chat(text), {text[:40] or "a": text.encode(errors="replace")}, {}))


def test_the_page_allows_itself_nothing_and_shows_everything() -> None:
    shown = html_page(chat(HOSTILE), {"a.py": b"print('<b>')"}, {"evil.svg": b"<svg onload=alert(1)></svg>"})
    elements = check(shown)
    assert any(value.startswith("default-src 'none'") for value in elements.attributes["content"])
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "print(&#x27;&lt;b&gt;&#x27;)" in re.sub("<[^>]+>", "", shown)
    assert "svg" not in shown


async def test_a_zip_holds_transcript_log_and_files() -> None:
    blobs = MemoryBlobs()
    ref = FileRef(path="pkg/a.py", sha256=await blobs.put(b"print(1)\n"), size=9)
    log = recorded(
        ChatStarted(goal="x", team=TEAMS["iterate"], workspace="/w"),
        VersionWritten(number=1, files=(ref,), tree=tree_of((ref,))),
    )
    content = await document(log, "zip", blobs)
    assert content == await document(log, "zip", blobs), "the same chat gives the same bytes"
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.testzip() is None
    assert archive.namelist() == ["files/pkg/a.py", "log.jsonl", "transcript.md"]
    assert archive.read("files/pkg/a.py") == b"print(1)\n"
    assert archive.read("log.jsonl") == await document(log, "jsonl", blobs)


async def test_a_lost_file_is_an_error_and_no_half_archive() -> None:
    ref = FileRef(path="a.py", sha256="0" * 64, size=9)
    log = recorded(VersionWritten(number=1, files=(ref,), tree="t"))
    for form in ("zip", "html"):
        with pytest.raises(LogDamaged):
            await document(log, form, MemoryBlobs())


def test_unpacking_stays_in_one_folder() -> None:
    for path in ("../up", "/etc/passwd", "a/../../b"):
        with pytest.raises(BadUsage):
            pack_zip({path: b""})
    assert zipfile.ZipFile(io.BytesIO(pack_zip({"..\\up": b""}))).namelist() == [".._up"]


@pytest.mark.parametrize(
    ("survey", "text"),
    [
        (
            BaseSurveyed(kind="git", root="/p", commit="0123456789", files=2),
            "works on 2 files of /p (git 0123456)",
        ),
        (
            BaseSurveyed(kind="git", root="/p", commit="0123456789", files=1, dirty_count=1200),
            "works on 1 file of /p (git 0123456), 1,200 not committed",
        ),
        (
            BaseSurveyed(kind="folder", root="/p", files=3, dirty_count=3, ignored=1000),
            "works on 3 files of /p (folder); leaves out 1,000 ignored",
        ),
    ],
)
def test_what_is_not_committed_is_told_of_a_repository_that_has_some(survey: BaseSurveyed, text: str) -> None:
    assert survey_text(survey) == text
