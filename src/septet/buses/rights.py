"""What each kind of user may publish and hear, as subjects of NATS."""

from collections.abc import Iterator, Sequence

from septet.domain.tokens import token
from septet.domain.values import Value

API = "$JS.API"
LOG, LOG_STREAM = "septet.log", "SEPTET_LOG"
BLOB, BLOB_STREAM = "septet.blob", "SEPTET_BLOBS"
PRESENCE, PRESENCE_STREAM = "septet-presence", "KV_septet-presence"
PAGES = f"{API}.DIRECT.GET.{LOG_STREAM}"
"""Where the log is read, many messages at once."""
CONDUCTOR = "conductor"
NEVER = (f"{API}.STREAM.DELETE.>", f"{API}.STREAM.PURGE.{LOG_STREAM}", f"{API}.STREAM.MSG.DELETE.>")
"""What nobody may do over the network: a log is only ever added to."""

NAMED = (
    "model_answered",
    "reply_refused",
    "facts_changed",
    "decision_recorded",
    "tool_called",
    "answer_given",
    "budget_reached",
)
"""Events that say whose they are: every member may store its own."""
MADE = {
    "planner": ("plan_proposed",),
    "coder": ("version_written", "tool_answered", "snapshot_taken"),
    "runner": (
        "version_written",
        "tool_answered",
        "snapshot_taken",
        "run_started",
        "run_finished",
        "evidence_found",
        "packages_wanted",
        "packages_decided.policy",
        "packages_installed",
    ),
    "reviewer": ("review_given",),
    "manager": ("speaker_chosen", "terminated"),
    "exemplar": ("example_given",),
}
"""Events that only some roles make. A coder cannot claim a run, nor judge its own work; a runner cannot decide for
the person."""
FLOOR = ("turn_opened", "chat_ended")
"""Who has the floor passes it on or ends the chat, by the team's policy: every member may, the latter by its name."""


REACHED = (
    f"{API}.INFO",
    f"{API}.STREAM.NAMES",
    f"{API}.STREAM.INFO.*",
    f"{API}.STREAM.MSG.GET.*",
    PAGES,
    f"{LOG}.*.t.>",
    f"{BLOB}.>",
    f"$KV.{PRESENCE}.member.>",
    "septet.bus.*.*",
    "septet.said.*",
)
"""All that any member can ever reach; rights bound it further. Rights alone would not do: the server sends its answers
to whatever subject it is told, and asks nobody whether the asker may publish there."""
TOLD = ("septet.stored.>", "septet.work.*")
"""All that any member can ever hear, besides answers."""


class Rights(Value):
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    inbox: tuple[str, ...] = ()
    never: tuple[str, ...] = NEVER


def inbox(name: str) -> str:
    """Answers to a user come to a place of its own, which no other member can hear."""
    return f"_INBOX_{token(name)}"


def conductor_rights() -> Rights:
    return Rights(publish=(">",), subscribe=(">",))


def member_rights(name: str, roles: Sequence[str], called: Sequence[str]) -> Rights:
    """Hear the orders of its roles, store what they make, read logs, keep contents, say that it is there.

    `called` are the names under which it speaks in chats.
    """
    return Rights(
        publish=(
            f"{API}.INFO",
            f"{API}.STREAM.NAMES",
            *(f"{API}.STREAM.INFO.{stream}" for stream in (LOG_STREAM, BLOB_STREAM, PRESENCE_STREAM)),
            *(f"{API}.STREAM.MSG.GET.{stream}" for stream in (LOG_STREAM, BLOB_STREAM)),
            PAGES,
            f"{BLOB}.*.*.*.*",
            *(f"{LOG}.*.t.{what}" for what in storing(roles, called)),
            *(f"septet.bus.*.{token(one)}" for one in called),
            "septet.said.*",
            f"$KV.{PRESENCE}.member.{token(name)}.*",
        ),
        subscribe=tuple(subject for role in roles for subject in hearing(role)),
        inbox=(f"{inbox(name)}.>",),
    )


def storing(roles: Sequence[str], called: Sequence[str]) -> Iterator[str]:
    """Its own events, and moves: alone, or together with an event of its own."""
    named = [f"{kind}.{token(one)}" for kind in NAMED for one in called]
    own = [*named, *sorted({made(kind) for role in roles for kind in MADE.get(role, ())})]
    yield from own
    for move in ("turn_opened.*", *(f"chat_ended.{token(one)}" for one in called)):
        yield move
        yield from (f"{move}.{one}" for one in own)


def made(kind: str) -> str:
    """By anybody, unless it is said by whom."""
    return kind if "." in kind else f"{kind}.*"


def hearing(role: str) -> tuple[str, ...]:
    """Turns of the role: as they are opened, and as they are ordered again."""
    return (*opened(role), f"septet.work.{role}")


def opened(role: str) -> tuple[str, str]:
    """Turns of the role: by a move alone, and by one that was stored together with what led to it."""
    subject = f"septet.stored.*.t.turn_opened.{token(role)}"
    return subject, f"{subject}.>"
