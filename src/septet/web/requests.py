"""The requests that the page may send, decoded and validated, and the responses to errors."""

import logging
from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from septet.common.values import Value
from septet.domain.teams import Budget
from septet.errors import (
    BadUsage,
    SeptetError,
    as_septet_error,
    innermost,
)
from septet.protocols.http import Endpoint, json_response, status_of

Text = Annotated[str, Meta(max_length=100_000)]
Name = Annotated[str, Meta(max_length=500)]
Sequence = Annotated[int, Meta(ge=0, le=1 << 48)]


class NewChat(Value, forbid_unknown_fields=True):
    """The form for a new chat: a goal or a demo, a team and its settings; without a folder it gets a new one."""

    goal: Text = ""
    demo: Name = ""
    team: Name = ""
    model: Name = ""
    folder: Annotated[str, Meta(max_length=4096)] = ""
    step: bool = False
    yes: bool = False
    consult: bool = False
    rounds: Annotated[int, Meta(ge=1, le=1000)] | None = None
    cost: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    def with_limits(self, budget: Budget) -> Budget:
        return replace(
            budget, rounds=self.rounds or budget.rounds, cost=budget.cost if self.cost is None else self.cost
        )


class PersonAction(Value, tag_field="act", tag=str.lower, forbid_unknown_fields=True):
    """An action of the person; `act` is its name."""


class Say(PersonAction):
    """A message: the answer if the team asks a question, else an instruction for the next turn.

    `action` is the digest of the question that the person saw; words that approve something must name it.
    """

    text: Text
    to: Name = ""
    action: Name = ""


class Approve(PersonAction):
    """Approves exactly the plan that the person saw: by its digest, or by its sequence number."""

    plan: Name = ""
    seq: Sequence = 0


class Accept(PersonAction):
    """Accepts exactly the version that the person saw as it is, whatever the checks say."""

    tree: Name


class EditPlan(PersonAction, tag="edit"):
    """Replaces the plan that waits for approval by the person's own."""

    text: Text


class Pause(PersonAction):
    """Pauses before the next turn."""


class Resume(PersonAction):
    """Goes on; if `action` is what the team asks about, that is granted."""

    action: Name = ""


class Step(PersonAction):
    """Runs one turn, then pauses; if the team asks about a turn, `action` names which."""

    action: Name = ""


class Stop(PersonAction):
    """Stops the team at once."""


class Fork(PersonAction):
    """Starts a new chat from a copy of this one, up to a version or an event if one is given."""

    version: Name = ""
    seq: Sequence = 0


class Restore(PersonAction):
    """Makes an older version the newest one."""

    version: Name


class Deliver(PersonAction):
    """Write these files of the newest version to the person's folder."""

    files: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=10_000)]


Act = Say | Approve | Accept | EditPlan | Pause | Resume | Step | Stop | Fork | Restore | Deliver

NEW_CHAT_DECODER: Decoder[NewChat] = Decoder(NewChat)
ACT_DECODER: Decoder[Act] = Decoder(Act)


def error_response(error: SeptetError) -> Response:
    return json_response({"error": error.cause, "remedy": error.remedy}, status_of(error))


def with_error_responses(endpoint: Endpoint) -> Endpoint:
    """Report expected and unexpected errors as JSON, never as a traceback."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            if not isinstance(innermost(error), SeptetError):
                logging.getLogger("septet.web").exception("a request could not be answered")
            return error_response(as_septet_error(error))

    return answer


def parse_whole_number(text: str, name: str) -> int:
    """Parse a number in a URL; at most 12 digits."""
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise BadUsage(f"'{name}' is '{text[:40]}', which is not a whole number", "use a whole number")
    return int(text)
