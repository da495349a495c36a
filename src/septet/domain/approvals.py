"""Decides whether a person's message is an approval and nothing else, and names exactly the action that is approved."""

from hashlib import sha256

import msgspec

from septet.common.patterns import LazyPattern
from septet.domain.state import State

IT = r"(?:it|that|this|all|everything|the plan|this plan|that plan|your plan|plan)"
PRAISE = r"(?:good|great|fine|right|ok|okay|perfect|excellent|nice)"
FORMS = (
    "y|yes|yep|yeah|ok|okay|sure|approved?|agreed|lgtm|perfect|save",
    rf"(?:{IT} )?(?:looks?|sounds?|is) (?:very |really |all |pretty )?{PRAISE}(?: to me)?",
    rf"(?:that|it)'s (?:all )?{PRAISE}",
    rf"(?:i|we) (?:approve|agree|accept)(?: {IT})?",
    rf"(?:save|approve|accept|keep)(?: {IT})?(?: as (?:it )?is)?",
    "go ahead|go on|proceed|do it|let's go",
)
APPROVAL = LazyPattern("|".join(FORMS))
ACCEPTANCE = LazyPattern(r"(?:i |we )?accept(?:ed)?(?: (?:it|this|that|the work))?(?: as (?:it )?is)?")
COURTESY = LazyPattern(r"(?:thanks|thank you|thx|please|great|good|nice)")
LEADING = LazyPattern(r"^(?:(?:please|yes|ok|okay|great|then|so) )+")
PAUSES = LazyPattern(r"[.,;!\n]+|\band\b")

ASKS = LazyPattern(
    r"(?:and |but |so )?(?:where|what|which|who|whose|when|why|how"
    r"|is|are|was|were|does|do|did|has|have|can|could|should)\b"
)
REQUEST = LazyPattern(
    r"(?:can|could|should) (?:you|we|i)\b|(?:how|what) about\b|why (?:not|don't)\b|what if\b"
)
"""Forms of a question that ask for work."""
SENTENCE_END = LazyPattern(r"(?<=[.?!])\s+")


def action_digest(tool: str, arguments: str, tree: str) -> str:
    """Return the digest of an action: another tool, other arguments or another version are another action."""
    return sha256(msgspec.json.encode((tool, arguments, tree))).hexdigest()


def turn_action(state: State) -> str:
    """Return the digest of the team's next turn: what a person grants in step mode or at a review."""
    counts = state.floor.turn_counts
    taken = sum(counts.values()) - counts.get(state.team.person, 0)
    return action_digest("turn", str(taken), newest_tree(state))


def newest_tree(state: State) -> str:
    return state.work.version.tree if state.work.version else ""


def is_question(text: str) -> bool:
    """Whether the text only asks: an answer is wanted, and no work."""
    sentences = [one for one in SENTENCE_END.split(text.strip().lower().replace("’", "'")) if one]
    return bool(sentences) and all(
        one.endswith("?") and ASKS.match(one) and not REQUEST.match(one) for one in sentences
    )


def approves(text: str) -> bool:
    """Whether the text only approves, perhaps in several phrases: "Sounds good, save it." Empty text approves too."""
    return not text.strip() or (asks_nothing(text) and any(map(is_approval, split_clauses(text))))


def asks_nothing(text: str) -> bool:
    """Whether the text contains only approval, praise and thanks, and no request."""
    return all(is_approval(part) or COURTESY.fullmatch(part) for part in split_clauses(text))


def split_clauses(text: str) -> list[str]:
    parts = PAUSES.split(text.lower().replace("’", "'"))
    return [" ".join(part.split()) for part in parts if part.strip()]


def is_approval(part: str) -> bool:
    core = part.removesuffix(" please")
    return any(APPROVAL.fullmatch(phrase) for phrase in (core, LEADING.sub("", core)))


def accepts(text: str) -> bool:
    """Whether the text accepts the work as it is, whatever the checks say."""
    return bool(ACCEPTANCE.fullmatch(" ".join(text.lower().strip(" .!\n").split())))
