"""`export` as a person uses it: pages, archives, redaction, and never half a file."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from cli.commands import SMALL, Septet
from cli.terminals import needs_terminal, on_terminal

from septet.domain.codec import decode


def test_a_page_and_an_archive_of_a_chat(adding: Septet) -> None:
    place = adding.home.parent
    shown = adding("export", "adding", "--format", "html")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("<!doctype html>")
    for part in ('<td class="good">✓<td>P1 add(a, b) gives the sum', "A first try.", "verdict: accept"):
        assert part in shown.stdout
    assert "return a + b" in re.sub("<[^>]+>", "", shown.stdout)
    assert '<summary><span class="good">✓</span> tests: ' in shown.stdout, "the output of a run is folded"
    assert "http:" not in shown.stdout
    done = adding("export", "adding", "--format", "zip", "--out", "adding.zip")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with zipfile.ZipFile(place / "adding.zip") as archive:
        assert {"transcript.md", "log.jsonl", "files/add.py", "files/test_add.py"} <= set(archive.namelist())
        archive.extractall(place / "out")
    program = [sys.executable, str(place / "out" / "files" / "add.py"), "20", "22"]
    assert subprocess.check_output(program, text=True) == "42\n"
    assert (place / "out" / "transcript.md").read_text() == adding("export", "adding").stdout


def test_every_form_is_redacted_and_says_how_much(adding: Septet) -> None:
    secret, mail = "Qwertz-Uiop-4711", "ann@example.org"
    words = f"ask {mail} with {secret}, or see /home/ann/x"
    assert adding("run", words, "-m", SMALL, "-q", "-n", "talk").returncode == 4
    assert words in adding("export", "talk").stdout
    for form in ("md", "html", "jsonl", "txt", "zip"):
        target = adding.home.parent / f"talk.{form}"
        args = ("export", "talk", "--format", form, "--redact", "--out", target.name)
        done = adding(*args, environment={"SOME_API_KEY": secret})
        assert done.returncode == 0, done.stderr
        text = text_of(target)
        assert "ask [redacted e-mail] with [redacted key], or see ~/x" in text
        for gone in (secret, mail, "/home/ann", str(adding.home.parent)):
            assert gone not in text
        assert " redacted (1 key, 1 e-mail address, " in done.stderr
    log = (adding.home.parent / "talk.jsonl").read_text().splitlines()
    assert [decode(line).seq for line in log] == list(range(1, len(log) + 1))


def text_of(path: Path) -> str:
    if path.suffix != ".zip":
        return path.read_text()
    with zipfile.ZipFile(path) as archive:
        return "\n".join(archive.read(name).decode() for name in archive.namelist())


def test_what_fails_leaves_the_file_as_it_was(adding: Septet) -> None:
    target = adding.home.parent / "kept.zip"
    target.write_text("before")
    shutil.rmtree(adding.home / "blobs")
    for form in ("zip", "html"):
        failed = adding("export", "adding", "--format", form, "--out", str(target))
        assert (failed.returncode, failed.stdout) == (1, "")
        assert len(failed.stderr.splitlines()) == 1
        assert adding("export", "adding", "--format", form).stdout == ""
    assert target.read_text() == "before"
    for place, reason in (("none/a.md", "there is no folder"), (".", "is a folder")):
        refused = adding("export", "adding", "--out", place)
        assert refused.returncode == 2
        assert reason in refused.stderr
    assert adding("export", "adding", "--format", "pdf").returncode == 2


@needs_terminal
def test_a_zip_is_not_written_to_a_terminal(adding: Septet) -> None:
    with on_terminal(adding, "export", "adding", "--format", "zip") as terminal:
        assert "exit code 2" in terminal.wait_for("exit code")
