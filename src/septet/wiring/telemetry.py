"""Telemetry, off by default: a chat's events as OpenTelemetry spans and metrics, by the names for generative AI.

A chat is a trace. Words, code and commands are not sent, unless `content` is asked for.
"""

import json
import logging
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import sha256
from importlib.metadata import version as installed_version
from threading import Thread
from time import time

from anyio import CancelScope, create_task_group, to_thread
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from septet.domain.events import (
    ChatEnded,
    ChatHalted,
    ModelAnswered,
    Recorded,
    RunFinished,
    RunStarted,
    ToolAnswered,
    ToolCalled,
    TurnOpened,
    VersionWritten,
)
from septet.domain.reduce import fold, reduce
from septet.domain.state import State
from septet.errors import SeptetError
from septet.models.table import find_provider
from septet.runtime.log import Listen
from septet.ways.endings import ending

NANOSECONDS = 1_000_000_000
Attribute = str | int | float | bool | Sequence[str]
CLOSING_SECONDS = 2.0
"""How long the end of a process waits for a collector."""
TRACE: ContextVar[int] = ContextVar("trace")
DURATION_BOUNDS = tuple(2**step / 100 for step in range(14))
TOKEN_BOUNDS = tuple(4**step for step in range(14))
"""Both as the conventions have them."""
WELL_KNOWN = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""What the conventions call a provider, where it is not what we or pydantic-ai call it."""


class TraceOfChat(RandomIdGenerator):
    """One trace a chat, whichever process goes on with it."""

    def generate_trace_id(self) -> int:
        return TRACE.get(0) or super().generate_trace_id()


def trace_of(events: Sequence[Recorded]) -> int:
    """The trace of a chat, from its name and when it began."""
    first = events[0]
    digest = sha256(f"{first.chat} {first.at!r}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or random.getrandbits(128)


class Telemetry:
    """Where spans and metrics go. `content` also sends what members write, and what tools get and return."""

    def __init__(
        self,
        spans: SpanProcessor,
        metrics: MetricReader,
        content: bool = False,
        resource: Resource | None = None,
    ) -> None:
        resource = resource or Resource.create({"service.name": "septet"})
        self.content = content
        self.tracers = TracerProvider(resource=resource, id_generator=TraceOfChat(), shutdown_on_exit=False)
        self.tracers.add_span_processor(spans)
        self.meters = SdkMeterProvider([metrics], resource=resource, shutdown_on_exit=False)
        self.instruments = Instruments(self.meters)
        self._errors = ExportErrors()
        logging.getLogger("opentelemetry").addHandler(self._errors)

    @asynccontextmanager
    async def observe(self, events: Sequence[Recorded], listen: Listen) -> AsyncGenerator[Listen]:
        """A listener that also makes spans of what it hears; those that are open at the end are closed."""
        if not events:
            yield listen
            return
        trace = ChatTrace(self, fold(events), trace_of(events))

        async def hear(recorded: Recorded) -> None:
            trace.add(recorded)
            await listen(recorded)

        try:
            yield hear
        finally:
            trace.close()

    async def close(self) -> None:
        """Send what is left. A collector that does not take it soon is not waited for: the threads are daemons."""
        senders = [Thread(target=one.shutdown, daemon=True) for one in (self.tracers, self.meters)]
        with CancelScope(shield=True):
            async with create_task_group() as tasks:
                for sender in senders:
                    sender.start()
                    tasks.start_soon(to_thread.run_sync, partial(sender.join, CLOSING_SECONDS))
        late = any(sender.is_alive() for sender in senders)
        problem = self._errors.last or (
            f"the collector took nothing within {CLOSING_SECONDS:.0f} s" if late else ""
        )
        logging.getLogger("opentelemetry").removeHandler(self._errors)
        if problem:
            logging.getLogger("septet").warning("telemetry was lost: %s", problem)


class ExportErrors(logging.Handler):
    """Keeps the newest error of the exporters, to be told once: they log every attempt."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.last = record.getMessage()


class Instruments:
    def __init__(self, meters: MeterProvider) -> None:
        meter = meters.get_meter("septet", installed_version("septet"))
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of a model's request and answer",
            explicit_bucket_boundaries_advisory=TOKEN_BOUNDS,
        )
        self.seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="How long a model took to answer",
            explicit_bucket_boundaries_advisory=DURATION_BOUNDS,
        )
        self.chats = meter.create_counter("septet.chats", unit="{chat}", description="Chats that have ended")
        self.cost = meter.create_counter("septet.cost", unit="{USD}", description="What answers have cost")


class ChatTrace:
    """The spans of a chat while it is conducted here: the chat, its turns, and in them answers, calls and runs."""

    def __init__(self, telemetry: Telemetry, state: State, trace: int) -> None:
        self._telemetry = telemetry
        self._tracer = telemetry.tracers.get_tracer("septet", installed_version("septet"))
        self._state = state
        self._at = time()
        self._open: dict[str, Span] = {}
        token = TRACE.set(trace)
        self._chat = self._tracer.start_span(
            f"invoke_workflow {state.team.name}",
            start_time=nanoseconds(self._at),
            attributes={
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": state.team.name,
                "gen_ai.conversation.id": state.chat,
            },
        )
        TRACE.reset(token)
        self._turn: Span | None = None

    def add(self, recorded: Recorded) -> None:
        self._state, self._at = reduce(self._state, recorded), recorded.at
        match recorded.event:
            case TurnOpened(speaker=speaker):
                self._open_turn(speaker)
            case ModelAnswered():
                self._answer(recorded.event)
            case ToolCalled(id=name) | RunStarted(id=name):
                self._open[name] = self._begin(recorded.event)
            case ToolAnswered() | RunFinished():
                self._finish(recorded.event)
            case VersionWritten(number=number, files=files):
                found = {"septet.version": number, "septet.files": len(files)}
                (self._turn or self._chat).add_event("version written", found, nanoseconds(self._at))
            case ChatEnded() | ChatHalted():
                self._end()
            case _:
                pass

    def close(self) -> None:
        """The process stops conducting: the chat ended, waits for the person, or was interrupted."""
        for span in self._open.values():
            span.set_attribute("septet.interrupted", True)
            span.end(nanoseconds(self._at))
        if self._turn is not None:
            self._turn.end(nanoseconds(self._at))
        self._chat.end(nanoseconds(self._at))

    def _open_turn(self, speaker: str) -> None:
        if self._turn is not None:
            self._turn.end(nanoseconds(self._at))
        found = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": speaker}
        if asked := self._asked(speaker):
            found["gen_ai.provider.name"] = provider_and_name(asked)[0]
        self._turn = self._span(f"invoke_agent {speaker}", found, self._chat)

    def _answer(self, event: ModelAnswered) -> None:
        answer, asked = event.answer, self._asked(event.role)
        provider, model = provider_and_name(asked or answer.model)
        common = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.response.model": provider_and_name(answer.model)[1] or model,
        }
        found: dict[str, Attribute] = {
            **common,
            "gen_ai.agent.name": event.role,
            "gen_ai.response.finish_reasons": [answer.stop],
            "gen_ai.usage.input_tokens": answer.usage.prompt,
            "gen_ai.usage.output_tokens": answer.usage.completion,
            "gen_ai.usage.cache_read.input_tokens": answer.usage.cached,
        }
        if self._telemetry.content:
            parts = [{"type": "text", "content": answer.text}]
            found["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": parts}])
        span = self._span(f"chat {model}", found, kind=SpanKind.CLIENT, seconds=answer.seconds)
        span.end(nanoseconds(self._at))
        instruments = self._telemetry.instruments
        instruments.seconds.record(answer.seconds, common)
        instruments.tokens.record(answer.usage.prompt, {**common, "gen_ai.token.type": "input"})
        instruments.tokens.record(answer.usage.completion, {**common, "gen_ai.token.type": "output"})
        instruments.cost.add(answer.cost or 0.0, common)

    def _begin(self, event: ToolCalled | RunStarted) -> Span:
        if isinstance(event, RunStarted):
            found = {"septet.run.purpose": event.purpose}
            found |= {"septet.run.command": event.command} if self._telemetry.content else {}
            return self._span(f"run {event.purpose}", found)
        found = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": event.call or event.id,
        }
        found |= {"gen_ai.tool.call.arguments": event.arguments} if self._telemetry.content else {}
        return self._span(f"execute_tool {event.name}", found)

    def _finish(self, event: ToolAnswered | RunFinished) -> None:
        span = self._open.pop(event.id, None)
        if span is None:
            return
        if isinstance(event, RunFinished):
            failed, text = not event.result.succeeded, f"{event.result.stdout}{event.result.stderr}"
        else:
            failed, text = event.failed, event.text
        if failed:
            span.set_status(Status(StatusCode.ERROR))
            span.set_attribute("error.type", "failed")
        if self._telemetry.content:
            span.set_attribute("gen_ai.tool.call.result", text)
        span.end(nanoseconds(self._at))

    def _end(self) -> None:
        if self._state.halted is not None:
            self._chat.set_attribute("error.type", "halted")
            self._chat.set_status(
                Status(StatusCode.ERROR, self._state.halted.cause if self._telemetry.content else None)
            )
            return
        ended = ending(self._state)
        reason = ended.reason if ended else "unfinished"
        met = sum(found.passed for found in self._state.work.evidence.values())
        self._chat.set_attribute("septet.ending", reason)
        self._chat.set_attribute("septet.requirements", len(self._state.plan.items))
        self._chat.set_attribute("septet.requirements.met", met)
        self._telemetry.instruments.chats.add(
            1, {"septet.ending": reason, "gen_ai.workflow.name": self._state.team.name}
        )

    def _span(
        self,
        name: str,
        attributes: Mapping[str, Attribute],
        parent: Span | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        seconds: float = 0.0,
    ) -> Span:
        context = set_span_in_context(parent or self._turn or self._chat)
        found = {"gen_ai.conversation.id": self._state.chat, **attributes}
        start = nanoseconds(self._at - seconds)
        return self._tracer.start_span(name, context, kind, found, start_time=start)

    def _asked(self, role: str) -> str:
        models = (one.model for one in self._state.team.members if one.name == role)
        return next((names[0] for names in models if names), "")


def provider_and_name(model: str) -> tuple[str, str]:
    """The provider, as the conventions call it, and its own name for the model, without paths and addresses."""
    try:
        found, name = find_provider(model)
    except SeptetError:
        return "septet", model
    provider = found.name
    if found.is_offline:
        name = name.rpartition("/")[2]
    elif provider == "url":
        name = name.partition("#")[2]
    elif provider == "pydantic-ai":
        provider, _, name = name.partition(":")
    return WELL_KNOWN.get(provider, provider), name


def nanoseconds(seconds: float) -> int:
    return int(seconds * NANOSECONDS)


def open_telemetry(content: bool) -> Telemetry:
    """By OTLP over HTTP to where the usual variables say (OTEL_EXPORTER_OTLP_ENDPOINT …)."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return Telemetry(
        BatchSpanProcessor(OTLPSpanExporter()), PeriodicExportingMetricReader(OTLPMetricExporter()), content
    )
