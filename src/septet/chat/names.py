"""Names of chats: a slug of the goal and three letters, accepted by prefix."""

import re
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
MAX_LISTED = 4
SUFFIX_LENGTH, MAX_SUFFIX_LENGTH, TRIES_PER_LENGTH = 3, 12, 4
CHAT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def new_names(goal: str) -> Iterator[str]:
    """Yield candidates such as `analog-clock-k3f`: keywords of the goal's beginning and a random suffix. It grows,
    since the caller asks for another name only if one is taken."""
    import secrets  # lists need none

    words = re.findall(r"[a-z0-9]+", goal.strip().partition("\n\n")[0][:400].lower())
    keywords = [word for word in words if word not in FILLERS] or words or ["chat"]
    slug = "-".join(keywords[:3])[:40].strip("-")
    for tries in count():
        letters = min(SUFFIX_LENGTH + tries // TRIES_PER_LENGTH, MAX_SUFFIX_LENGTH)
        yield f"{slug}-{''.join(secrets.choice(LETTERS) for _ in range(letters))}"


OPENING = re.compile(r"(?:please\s+)?(?:make|write|create|build)\s+(?:me\s+)?(?:an?|the)\s+", re.IGNORECASE)
MAX_TITLE_LENGTH = 60


def chat_title(goal: str) -> str:
    """A goal's first sentence as a short title: 'Python app that displays the time' for 'Make me a Python app …'."""
    first = next((line.strip() for line in goal.splitlines() if line.strip()), "")
    sentence = re.split(r"(?<=[.!?])\s", first)[0].rstrip(".! ")
    words = OPENING.sub("", sentence, count=1) if OPENING.match(sentence) else sentence
    short = (
        words
        if len(words) <= MAX_TITLE_LENGTH
        else f"{words[:MAX_TITLE_LENGTH].rpartition(' ')[0] or words[:MAX_TITLE_LENGTH]} …"
    )
    return short[:1].upper() + short[1:]


def alternative_names(chat: str) -> Iterator[str]:
    """Yield names like that of the chat, with another random suffix."""
    return new_names(re.sub(rf"-[{LETTERS}]{{{SUFFIX_LENGTH},{MAX_SUFFIX_LENGTH}}}$", "", chat))


def checked_name(name: str) -> str:
    if not CHAT_NAME.fullmatch(name):
        raise BadUsage(
            f"'{name[:80]}' is not a valid name for a chat", "use up to 63 of a-z, 0-9, '.', '_' and '-'"
        )
    return name


def chat_name_from_title(title: str) -> str:
    """Return the name for a title, always the same for the same title: `random-midi` for `Random MIDI`."""
    if CHAT_NAME.fullmatch(title):
        return title
    if any(character in title for character in "/\\\0"):
        return checked_name(title)
    plain = normalize("NFKD", title.replace("ß", "ss")).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9._-]+", "-", plain).strip("._-")[:63].strip("._-")
    return slug or f"project-{sha256(title.encode()).hexdigest()[:8]}"


def find_name(prefix: str, names: Iterable[str], whole: bool = False) -> str:
    """Return the only name with this prefix. Commands that cannot be undone require the `whole` name."""
    known = list(names)
    if not prefix.strip():
        raise BadUsage("the name of a chat is missing", "see septet list")
    if prefix in known:
        return prefix
    found = [name for name in known if name.startswith(prefix)]
    if found and whole:
        raise BadUsage(f"there is no chat '{prefix[:80]}'", f"this needs the whole name, {name_list(found)}")
    if len(found) == 1:
        return found[0]
    if found:
        raise BadUsage(f"'{prefix}' matches {len(found)} chats ({name_list(found)})", "type more of the name")
    near = get_close_matches(prefix, known, n=1)
    raise BadUsage(
        f"there is no chat '{prefix[:80]}'", f"did you mean '{near[0]}'?" if near else "see septet list"
    )


def name_list(found: list[str]) -> str:
    return ", ".join(found[:MAX_LISTED]) + (", …" if len(found) > MAX_LISTED else "")
