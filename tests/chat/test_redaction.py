"""Redaction: what looks like a secret goes, code and addresses of blobs stay, and it is still a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from septet.chat.redaction import HOME, KEY, MAIL, Redaction
from septet.domain.events import PersonSpoke, Recorded, ToolCalled, VersionWritten
from septet.domain.files import FileRef

RANDOM = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6"
LINE = "\\n"
END = "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"use sk-proj-{RANDOM}!", f"use {KEY}!"),
        (f"gh{'p'}_{RANDOM} AKIA{'ABCDEFGH12345678'}", f"{KEY} {KEY}"),
        (f"Authorization: Bearer {RANDOM}", f"Authorization: Bearer {KEY}"),
        (f"OPENAI_API_KEY={RANDOM}\nDEBUG=1", f"OPENAI_API_KEY={KEY}\nDEBUG=1"),
        ("password = 'correct-horse'", f"password = '{KEY}'"),
        ('{"token": "abcdefgh"}', f'{{"token": "{KEY}"}}'),
        ("postgres://ann:pa55@db.example/x", f"postgres://{KEY}@db.example/x"),
        (f"{'eyJ'}hbGciOiJI.eyJzdWIiOiIx.c2ln rest", f"{KEY} rest"),
        (
            f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENC\n\nMI{RANDOM}\n{RANDOM}==\n{END}\nand on",
            f"{KEY}\nand on",
        ),
        (f'{{"code": "a{LINE}sk-{RANDOM}{LINE}b"}}', f'{{"code": "a{LINE}{KEY}{LINE}b"}}'),
        ("write to ann.lee+x@mail.example.org, or -bob@example.org.", f"write to {MAIL}, or {MAIL}."),
        ("in /home/ann/work and /Users/bob, not /srv/home/x", "in ~/work and ~, not /srv/home/x"),
        (f"file:///home/ann/a.py C:\\Users\\ann\\a.py /{'root'}/x", "file://~/a.py ~\\a.py ~/x"),
        ("the key is hunter2-hunter2, at /my/house/x", f"the key is {KEY}, at ~/x"),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, clean: str) -> None:
    redaction = Redaction(["hunter2-hunter2"], "/my/house")
    assert redaction.redact_text(text) == clean
    assert redaction.redact_text(clean) == clean, "what is redacted stays so"


@pytest.mark.parametrize(
    "text",
    [
        "token = self.lexer.next_token_of_line2(stream)",
        "password = getpass.getpass()",
        "tokens: 12345678901234567890",
        "@pytest.mark.anyio\ndef f(a, b):\n    return a @ b.T",
        "a basic understanding of authorization",
        "PRIMARY KEY pk_user_account_identifier",
        "/homely/rooms/root /usr/lib/rootfs",
        "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b",
    ],
)
def test_what_only_sounds_like_one_stays(text: str) -> None:
    redaction = Redaction()
    assert redaction.redact_text(text) == text
    assert redaction.summary == "0 redacted"


def test_a_redacted_log_is_still_a_log_and_is_counted() -> None:
    files = (FileRef(path="notes-ann@example.org.txt", sha256="ab" * 32, size=3),)
    arguments = f'{{"path": "/home/ann/x", "text": "1{LINE}sk-{RANDOM}"}}'
    log = [
        Recorded(chat="c", seq=1, at=1.5, event=PersonSpoke(text=f'"\\ sk-{RANDOM} ✓ ann@example.org')),
        Recorded(
            chat="c", seq=2, at=2.5, event=ToolCalled(id="1", by="coder", name="write", arguments=arguments)
        ),
        Recorded(chat="c", seq=3, at=3.5, event=VersionWritten(number=1, files=files, tree="cd" * 32)),
    ]
    redaction = Redaction()
    said, called, written = redaction.redact_log(log)
    assert said == Recorded(chat="c", seq=1, at=1.5, event=PersonSpoke(text=f'"\\ {KEY} ✓ {MAIL}'))
    assert isinstance(called.event, ToolCalled)
    assert called.event.arguments == f'{{"path": "{HOME}/x", "text": "1{LINE}{KEY}"}}'
    assert isinstance(written.event, VersionWritten)
    assert written.event.files[0].path == MAIL
    assert (written.event.files[0].sha256, written.event.tree) == ("ab" * 32, "cd" * 32)
    assert redaction.summary == "5 redacted (2 keys, 2 e-mail addresses, 1 home path)"


@given(before=st.text(), after=st.text(), secret=st.text("abcXYZ019!$/", min_size=6, max_size=40))
def test_a_known_secret_never_survives(before: str, after: str, secret: str) -> None:
    event = PersonSpoke(text=f"{before}{secret}{after}")
    (clean,) = Redaction([secret]).redact_log([Recorded(chat="c", seq=1, at=1.0, event=event)])
    assert isinstance(clean.event, PersonSpoke)
    assert secret not in clean.event.text


def test_files_that_are_no_text_are_named() -> None:
    redaction = Redaction()
    assert redaction.redact_content("a.txt", b"ann@example.org") == MAIL.encode()
    assert redaction.redact_content("a.png", b"\xff\xfeann@example.org") == b"\xff\xfeann@example.org"
    assert redaction.summary.endswith("not scanned (binary): a.png")
