"""The facts file of a project: a Markdown list that people may edit. A line is `- fact (source, date)`."""

import os
import re
from hashlib import sha256
from pathlib import Path

from septet.domain.facts import FactsChange, apply_change, normalised, tidy
from septet.errors import StoreFailed

LINE = re.compile(r"^- (?P<fact>.+?)(?: \((?P<source>the person|[^()]*, \d{4}-\d\d-\d\d)\))?$")
HEAD = (
    "# Facts\n\nWhat every team that works in this project is told. Edit it as you like: one fact a line.\n\n"
)


class Memory:
    """The facts of one project, which is a workspace folder."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.path = (
            folder / f"{workspace.name or 'root'}-{sha256(str(workspace).encode()).hexdigest()[:8]}.md"
        )

    def lines(self) -> dict[str, str]:
        """Read the facts with their sources."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        except OSError as error:
            raise StoreFailed(
                f"the facts in {self.path} cannot be read ({error.strerror})", "check the file"
            ) from error
        found = [match for line in text.splitlines() if (match := LINE.match(line.rstrip()))]
        return {tidy(match["fact"]): match["source"] or "the person" for match in found}

    def facts(self) -> tuple[str, ...]:
        return tuple(self.lines())

    def own_facts(self) -> tuple[str, ...]:
        """Facts that the person stated in a chat or by a command, or wrote into the file."""
        return tuple(fact for fact, source in self.lines().items() if is_person_fact(source))

    def change(self, change: FactsChange, source: str) -> None:
        """Apply the change to the current file, atomically."""
        origins = {normalised(fact): origin for fact, origin in self.lines().items()}
        for fact in map(normalised, change.add):
            origins[fact] = source if is_person_fact(source) else origins.get(fact, source)
        own = [fact for fact, origin in origins.items() if is_person_fact(origin)]
        rows = [
            f"- {fact} ({origins[normalised(fact)]})\n" for fact in apply_change(self.facts(), change, own)
        ]
        self._write(rows)

    def ensure_file(self) -> None:
        """Create the file if it does not exist, for an editor to open."""
        if not self.path.exists():
            self._write([])

    def _write(self, rows: list[str]) -> None:
        draft = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(HEAD + "".join(rows), encoding="utf-8")
            os.replace(draft, self.path)  # noqa: PTH105  # one move, whatever stood there
        except OSError as error:
            raise StoreFailed(
                f"the facts in {self.path} cannot be kept ({error.strerror})", "make room"
            ) from error


def is_person_fact(source: str) -> bool:
    return source.startswith(("the person", "person in "))
