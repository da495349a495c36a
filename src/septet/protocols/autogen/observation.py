"""What others see of a runtime: AutoGen's log events, its OpenTelemetry spans, and intervention handlers."""

import logging
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from autogen_core import AgentId, DropMessage, InterventionHandler, MessageContext, TopicId
from autogen_core._telemetry import (  # as AutoGen's own runtimes outside of autogen_core do
    EnvelopeMetadata,
    MessageRuntimeTracingConfig,
    TraceHelper,
    get_telemetry_grpc_metadata,
)
from autogen_core._telemetry._tracing_config import MessagingOperation
from autogen_core.exceptions import MessageDroppedException
from autogen_core.logging import (
    DeliveryStage,
    MessageDroppedEvent,
    MessageEvent,
    MessageHandlerExceptionEvent,
    MessageKind,
)
from opentelemetry.trace import ProxyTracerProvider, TracerProvider, get_tracer_provider

from septet.protocols.autogen.serialization import Serializers

LOG = logging.getLogger("autogen_core")
EVENTS = logging.getLogger("autogen_core.events")
DIRECT, PUBLISH, RESPOND = MessageKind.DIRECT, MessageKind.PUBLISH, MessageKind.RESPOND
SEND, DELIVER = DeliveryStage.SEND, DeliveryStage.DELIVER
Place = AgentId | TopicId | None


class Observation:
    def __init__(
        self,
        serializers: Serializers,
        tracer_provider: TracerProvider | None,
        handlers: Sequence[InterventionHandler],
    ) -> None:
        self._serializers = serializers
        self._handlers = handlers
        self._is_traced = tracer_provider is not None or not isinstance(
            get_tracer_provider(), ProxyTracerProvider
        )
        self._tracer = TraceHelper(tracer_provider, MessageRuntimeTracingConfig("septet.autogen.Runtime"))

    @contextmanager
    def span(
        self, operation: MessagingOperation, place: Place, kind: str, parent: Mapping[str, str] | None = None
    ) -> Generator[None]:
        if not self._is_traced:
            yield
            return
        metadata = EnvelopeMetadata(**parent) if parent else None  # pyright: ignore[reportArgumentType]  # strings
        with self._tracer.trace_block(
            operation, place, parent=metadata, extraAttributes={"message_type": kind}
        ):
            yield

    def trace_headers(self) -> Mapping[str, str]:
        """The current span, for whoever handles what is sent now."""
        return get_telemetry_grpc_metadata() if self._is_traced else {}

    def note(
        self,
        message: object,
        kind: MessageKind,
        stage: DeliveryStage,
        sender: AgentId | None,
        receiver: Place,
    ) -> None:
        if EVENTS.isEnabledFor(logging.INFO):
            payload = self._text(message)
            EVENTS.info(
                MessageEvent(
                    payload=payload, sender=sender, receiver=receiver, kind=kind, delivery_stage=stage
                )
            )

    def note_failure(self, message: object, agent: AgentId, error: BaseException) -> None:
        if EVENTS.isEnabledFor(logging.INFO):
            EVENTS.info(
                MessageHandlerExceptionEvent(
                    payload=self._text(message), handling_agent=agent, exception=error
                )
            )

    def _text(self, message: object) -> str:
        try:
            return self._serializers.encode(message).data.decode(errors="replace")
        except ValueError:
            return "Message could not be serialized"

    async def on_send(self, message: object, context: MessageContext, recipient: AgentId) -> object:
        """What the handlers make of a request. Raises what they raise, or MessageDroppedException."""
        for handler in self._handlers:
            with self.span("intercept", recipient, type(handler).__name__):
                changed = await handler.on_send(message, message_context=context, recipient=recipient)
            message = self._checked(message, changed, DIRECT, context.sender, recipient)
        return message

    async def on_publish(self, message: object, context: MessageContext) -> object:
        """The same for what is published; the errors of handlers are logged and drop it."""
        for handler in self._handlers:
            try:
                with self.span("intercept", context.topic_id, type(handler).__name__):
                    changed = await handler.on_publish(message, message_context=context)
            except Exception as error:
                LOG.exception("Exception raised in intervention handler")
                raise MessageDroppedException from error
            message = self._checked(message, changed, PUBLISH, context.sender, context.topic_id)
        return message

    async def on_response(self, message: object, sender: AgentId, recipient: AgentId | None) -> object:
        for handler in self._handlers:
            changed = await handler.on_response(message, sender=sender, recipient=recipient)
            message = self._checked(message, changed, RESPOND, sender, recipient)
        return message

    def _checked(
        self, message: object, changed: object, kind: MessageKind, sender: AgentId | None, receiver: Place
    ) -> object:
        if changed is DropMessage or isinstance(changed, DropMessage):
            payload = self._text(message)
            EVENTS.info(MessageDroppedEvent(payload=payload, sender=sender, receiver=receiver, kind=kind))
            raise MessageDroppedException
        if changed is None:
            warnings.warn(
                "An intervention handler returned None: the message stays as it was. Return the message or"
                " DropMessage.",
                RuntimeWarning,
                stacklevel=3,
            )
            return message
        return changed
