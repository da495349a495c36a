"""`search` as a person uses it: over all chats, the newest first."""

from pathlib import Path

from cli.commands import SMALL, Septet, envelopes


def files(septet: Septet) -> set[Path]:
    return set(septet.home.rglob("*"))


def test_words_are_found_in_all_chats_the_newest_first(adding: Septet) -> None:
    assert adding("run", "subtract two numbers", "-m", SMALL, "-q", "-n", "later").returncode == 4
    before = files(adding)
    found = adding("search", "two", "numb")
    assert found.returncode == 0, found.stderr
    first, second = found.stdout.splitlines()
    assert first.startswith("later ")
    assert first.endswith("person     subtract two numbers")
    assert second.split()[0] == "adding"
    assert {path.name for path in files(adding) - before} == {"index.db"}, "it can be deleted at any time"
    hits = envelopes(adding("search", "verdict", "--json").stdout)
    assert [(hit["chat"], hit["who"]) for hit in hits] == [("adding", "reviewer")] * 2
    assert float(str(hits[0]["at"])) >= float(str(hits[1]["at"]))
    assert "verdict: accept" in str(hits[0]["words"])


def test_more_than_was_asked_for_is_said(adding: Septet) -> None:
    cut = adding("search", "add", "--most", "2")
    assert len(cut.stdout.splitlines()) == 2
    assert "only the newest 2 are shown: --most 4 shows more" in cut.stderr


def test_nothing_found_is_said_and_no_words_are_an_error(septet: Septet) -> None:
    nothing = septet("search", "unheard-of")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "no match" in nothing.stderr
    assert not septet.home.exists()
    for words in (["..."], [""], []):
        refused = septet("search", *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert len(refused.stderr.splitlines()) == 1
