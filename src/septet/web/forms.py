"""What the page may send, as checked values."""

from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder
from msgspec.structs import replace

from septet.domain.teams import Budget
from septet.domain.values import Value

Text = Annotated[str, Meta(max_length=100_000)]
Name = Annotated[str, Meta(max_length=500)]
Sequence = Annotated[int, Meta(ge=0, le=1 << 48)]


class NewChat(Value, forbid_unknown_fields=True):
    """A goal, or a demo's name, and whom to give it to."""

    goal: Text = ""
    demo: Name = ""
    team: Name = ""
    model: Name = ""
    step: bool = False
    yes: bool = False
    consult: bool = False
    rounds: Annotated[int, Meta(ge=1, le=1000)] | None = None
    cost: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    def bounds(self, budget: Budget) -> Budget:
        return replace(
            budget, rounds=self.rounds or budget.rounds, cost=budget.cost if self.cost is None else self.cost
        )


class Action(Value, tag_field="act", tag=str.lower, forbid_unknown_fields=True):
    """One thing that the person does; `act` says which."""


class Say(Action):
    """Words: an answer where the team asks, else a steer for the next turn."""

    text: Text
    to: Name = ""


class Approve(Action):
    """The plan that stands at `seq`, and no other."""

    seq: Sequence


class Accept(Action):
    """The newest version as it is, whatever the checks say."""


class EditPlan(Action, tag="edit"):
    text: Text


class Pause(Action):
    """Before the next turn."""


class Resume(Action):
    pass


class Step(Action):
    """One turn, then pause."""


class Stop(Action):
    pass


class Fork(Action):
    """A new chat with the same start, up to a version or an event; all of it where neither is named."""

    version: Name = ""
    seq: Sequence = 0


class Restore(Action):
    version: Name


Act = Say | Approve | Accept | EditPlan | Pause | Resume | Step | Stop | Fork | Restore

NEW_CHATS: Decoder[NewChat] = Decoder(NewChat)
ACTS: Decoder[Act] = Decoder(Act)
