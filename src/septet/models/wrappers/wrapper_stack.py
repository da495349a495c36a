"""Builds the stack of wrappers around a model; the order matters. The outermost turns faults into errors."""

from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from septet.domain.messages import Request
from septet.models.faults import Fault, error_for
from septet.models.providers.provider import Billing
from septet.models.wrappers.context_limit import ContextLimit
from septet.models.wrappers.continuation import Continuation, ThinkTags
from septet.models.wrappers.pricing import Pricing, UsageCheck
from septet.models.wrappers.retry import Fallback, Notify, RequestTimeout, Retry, RetryPolicy
from septet.models.wrappers.streams import Item, open_answer
from septet.models.wrappers.text_protocol import ArgumentRepair, TextProtocol
from septet.ports import Model


class Candidate(NamedTuple):
    """A model with its full name and how it is billed."""

    name: str
    model: Model
    billing: Billing = None


def make_resilient(candidates: Sequence[Candidate], policy: RetryPolicy, notify: Notify) -> Model:
    """A model that gives a valid answer or raises an error after which the chat can be resumed.

    Shortened and repaired requests are retried too; the next candidate is used only if all that fails.
    """
    wrapped = [(candidate.name, wrap(candidate, policy, notify)) for candidate in candidates]
    first = wrapped[0][1] if len(wrapped) == 1 else Fallback(wrapped, notify)
    return ErrorBoundary(first, candidates[0].name)


def wrap(candidate: Candidate, policy: RetryPolicy, notify: Notify) -> Model:
    """Wrap one candidate, from the inside out."""
    # The text protocol parses complete answers without the thinking in them, so it wraps both.
    model = TextProtocol(Continuation(ThinkTags(UsageCheck(candidate.model))))
    model = Retry(RequestTimeout(model), policy, notify)
    model = ArgumentRepair(ContextLimit(model))
    return Pricing(model, candidate.name, candidate.billing)


class ErrorBoundary:
    """Turns faults that are left into the errors that the port allows."""

    def __init__(self, model: Model, name: str) -> None:
        self._model = model
        self._name = name

    async def answer(self, request: Request) -> AsyncGenerator[Item, None]:
        try:
            async with open_answer(self._model, request) as items:
                async for item in items:
                    yield item
        except Fault as fault:
            raise error_for(fault, self._name) from fault
