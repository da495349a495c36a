"""Names of chats: a slug of the goal and three letters, accepted by prefix."""

import re
import secrets
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from hashlib import sha256
from itertools import count
from unicodedata import normalize

from septet.errors import BadUsage

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
FILLERS = {
    "a",
    "an",
    "the",
    "me",
    "make",
    "write",
    "create",
    "build",
    "python",
    "app",
    "program",
    "that",
    "with",
    "please",
}
MOST_NAMED = 4
TAIL, LONGEST_TAIL, TRIES = 3, 12, 4
GOOD = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def new_names(goal: str) -> Iterator[str]:
    """`analog-clock-k3f` and others like it, for whoever finds one that is free: words that say something, and letters
    that keep two chats of one goal apart. Where many are taken, they have more letters."""
    words = re.findall(r"[a-z0-9]+", goal[:400].lower())
    telling = [word for word in words if word not in FILLERS] or words or ["chat"]
    slug = "-".join(telling[:3])[:40].strip("-")
    for tries in count():
        letters = min(TAIL + tries // TRIES, LONGEST_TAIL)
        yield f"{slug}-{''.join(secrets.choice(LETTERS) for _ in range(letters))}"


def names_after(chat: str) -> Iterator[str]:
    """Other names of the same words, with other letters behind them."""
    return new_names(re.sub(rf"-[{LETTERS}]{{{TAIL},{LONGEST_TAIL}}}$", "", chat))


def checked_name(name: str) -> str:
    if not GOOD.fullmatch(name):
        raise BadUsage(
            f"'{name[:80]}' is no good name for a chat", "use up to 63 of a-z, 0-9, '.', '_' and '-'"
        )
    return name


def named_after(title: str) -> str:
    """A title of somebody's as the name of a chat, the same for the same title: `Random MIDI` is `random-midi`."""
    if GOOD.fullmatch(title):
        return title
    if any(character in title for character in "/\\\0"):
        return checked_name(title)
    plain = normalize("NFKD", title.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9._-]+", "-", plain).strip("._-")[:63].strip("._-")
    return slug or f"project-{sha256(title.encode()).hexdigest()[:8]}"


def find_name(prefix: str, names: Iterable[str], whole: bool = False) -> str:
    """The one chat that is meant. What cannot be taken back is done by the `whole` name only."""
    known = list(names)
    if not prefix.strip():
        raise BadUsage("no chat is named", "see septet list")
    if prefix in known:
        return prefix
    found = [name for name in known if name.startswith(prefix)]
    if found and whole:
        raise BadUsage(f"there is no chat '{prefix[:80]}'", f"this needs the whole name, {name_list(found)}")
    if len(found) == 1:
        return found[0]
    if found:
        raise BadUsage(f"'{prefix}' fits {len(found)} chats ({name_list(found)})", "type more of the name")
    near = get_close_matches(prefix, known, n=1)
    raise BadUsage(
        f"there is no chat '{prefix[:80]}'", f"did you mean '{near[0]}'?" if near else "see septet list"
    )


def name_list(found: list[str]) -> str:
    return ", ".join(found[:MOST_NAMED]) + (", …" if len(found) > MOST_NAMED else "")
