"""The edge of the package: what is left of a fault becomes the error that the port promises."""

from collections.abc import AsyncGenerator

from septet.domain.messages import Request
from septet.errors import ModelFailed, NoModel, SeptetError
from septet.models.faults import AccessDenied, Fault, RequestRejected
from septet.models.wrappers.ask import Item, open_answer
from septet.ports import Model


class ErrorBoundary:
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


def error_for(fault: Fault, name: str) -> SeptetError:
    """Exit 5 where only a person can help; 75 where the chat can be resumed as it is."""
    kind = NoModel if isinstance(fault, AccessDenied | RequestRejected) else ModelFailed
    return kind(f"{name}: {fault.cause}", fault.remedy)
