"""The exemplar: learns from files and from chats that ended done, and helps a coder that is stuck."""

from pathlib import Path

from cli.commands import SCRIPTS, Septet

STUCK = f"scripted:{SCRIPTS / 'stuck.yaml'}"
NOTE = """\
# Numbers with a thousands separator
ValueError: could not convert string to float '1,200': take the separators out of the string first.

```python
float(text.replace(',', ''))
```
"""


def test_a_coder_that_fails_in_the_same_way_succeeds_with_an_example(septet: Septet, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text(NOTE)
    learnt = septet("learn", "note.md")
    assert learnt.stdout.startswith("1 new example "), learnt.stderr
    done = septet("run", "totals", "-m", STUCK, "--yes", "-n", "totals")
    assert done.returncode == 0, done.stderr
    assert "an example from note.md: Numbers with a thousands separator" in done.stderr


def test_without_an_example_the_coder_is_told_so(septet: Septet) -> None:
    dry = septet("run", "totals", "-m", STUCK, "--yes", "-n", "totals")
    assert dry.returncode == 5, dry.stderr
    assert "exemplar  no example" in dry.stderr
    assert "disagree at step 3 of the coder" in dry.stderr


def test_a_chat_that_ended_done_teaches(adding: Septet) -> None:
    again = adding("learn", "adding")
    assert again.stdout.startswith("0 new examples"), "it was learnt when the chat ended"
    assert adding("learn", "nobody").returncode == 2
