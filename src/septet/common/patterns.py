"""Regular expressions that are compiled when they are first used: a talk uses few of those that are imported for it."""

import re
from collections.abc import Iterator
from functools import cached_property


class LazyPattern:
    """Like `re.compile`, for modules that nearly everything imports."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._pattern = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        return self._compiled.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._compiled.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._compiled.finditer(text)

    def findall(self, text: str) -> list[str]:
        """All matches of a pattern with at most one group."""
        return self._compiled.findall(text)

    def split(self, text: str) -> list[str]:
        """The parts between matches of a pattern without groups."""
        return self._compiled.split(text)

    def sub(self, replacement: str, text: str, count: int = 0) -> str:
        return self._compiled.sub(replacement, text, count)
