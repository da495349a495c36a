"""Telemetry: a chat's events as spans and metrics, off by default, without what was said unless that is asked for."""

import gzip
import http.server
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli.commands import SMALL, Septet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

from septet.agents.person import always_agree
from septet.domain.events import VersionWritten
from septet.settings.home import find_home
from septet.ways.table import TEAMS
from septet.wiring.session import open_session, with_model
from septet.wiring.telemetry import Telemetry, provider_and_name, trace_of

QUICK = f"scripted:{Path(__file__).parent.parent / 'scripts' / 'quick.yaml'}"
SAID = "It greets"
"""Words of the plan, which no telemetry has unless it may."""


async def spans_of_chat(home: Path, content: bool = False) -> tuple[list[ReadableSpan], InMemoryMetricReader]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    telemetry = Telemetry(SimpleSpanProcessor(exporter), reader, content)
    async with open_session(find_home({"SEPTET_HOME": str(home)})) as session:
        session.telemetry = telemetry
        chat = await session.start("greet", with_model(TEAMS["iterate"], QUICK), None)
        events = session.perform(chat, await session.sandbox(), always_agree)
        async for recorded in events:
            if isinstance(recorded.event, VersionWritten):
                break
        await events.aclose()
        async for _ in session.perform(chat, await session.sandbox(), always_agree):
            pass
        trace = trace_of(await session.log(chat))
    spans = list(exporter.get_finished_spans())
    assert {context_of(span).trace_id for span in spans} == {trace}, "one trace a chat, by whom it is resumed"
    return spans, reader


def context_of(span: ReadableSpan) -> SpanContext:
    assert span.context is not None
    return span.context


@pytest.mark.anyio
async def test_a_chat_is_a_trace_by_the_names_for_generative_ai_without_its_words(tmp_path: Path) -> None:
    spans, reader = await spans_of_chat(tmp_path / "home")
    by_id = {context_of(span).span_id: span for span in spans}
    chats = [span for span in spans if span.name == "invoke_workflow iterate"]
    assert [span.attributes and span.attributes.get("septet.ending") for span in chats] == [None, "done"]
    asked = [span for span in spans if span.name.startswith("chat ")]
    assert [span.attributes and span.attributes["gen_ai.agent.name"] for span in asked] == [
        "planner",
        "coder",
        "reviewer",
    ]
    for span in asked:
        assert span.parent is not None
        turn = by_id[span.parent.span_id]
        assert span.attributes is not None
        assert turn.name == f"invoke_agent {span.attributes['gen_ai.agent.name']}"
        assert turn.attributes is not None
        assert turn.attributes["gen_ai.provider.name"] == "scripted"
        assert span.attributes["gen_ai.provider.name"] == "scripted"
        assert span.attributes["gen_ai.request.model"] == "quick.yaml"
    assert any(span.name == "run tests" for span in spans)
    assert SAID not in "".join(span.to_json() for span in spans)
    assert str(tmp_path) not in "".join(span.to_json() for span in spans)
    counts = {
        metric.name: sum(
            point.count if isinstance(point, HistogramDataPoint) else getattr(point, "value", 0)
            for point in metric.data.data_points
        )
        for found in [reader.get_metrics_data()]
        if found is not None
        for resource in found.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert counts["gen_ai.client.operation.duration"] == 3
    assert counts["gen_ai.client.token.usage"] == 6
    assert counts["septet.chats"] == 1


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        ("azure/ours", "azure.ai.openai", "ours"),
        ("pydantic-ai:google:gemini-3", "gcp.gemini", "gemini-3"),
        ("pydantic-ai:groq:llama:70b", "groq", "llama:70b"),
        ("url:http://me:secret@10.0.0.1/v1#qwen", "url", "qwen"),
        ("http://me:secret@10.0.0.1/v1", "url", ""),
        ("replay:/home/me/chat.jsonl", "replay", "chat.jsonl"),
        ("ollama/qwen", "ollama", "qwen"),
    ],
)
def test_a_model_is_told_by_the_names_of_the_conventions_without_paths_and_addresses(
    model: str, provider: str, name: str
) -> None:
    assert provider_and_name(model) == (provider, name)


@pytest.mark.anyio
async def test_words_are_sent_if_they_are_asked_for(tmp_path: Path) -> None:
    spans, _ = await spans_of_chat(tmp_path / "home", content=True)
    assert SAID in "".join(span.to_json() for span in spans)


class Collector(http.server.BaseHTTPRequestHandler):
    """Takes what an OTLP exporter posts."""

    bodies: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        packed = self.headers.get("content-encoding") == "gzip"
        self.bodies.append((self.path, gzip.decompress(body) if packed else body))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as its parent's
        """Nothing is printed."""


@contextmanager
def collector() -> Generator[tuple[str, list[tuple[str, bytes]]]]:
    bodies: list[tuple[str, bytes]] = []
    handler = type("Handler", (Collector,), {"bodies": bodies})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()


def test_a_collector_gets_it_by_otlp_only_if_the_person_wants_it(septet: Septet) -> None:
    with collector() as (url, bodies):
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": url}
        quiet = septet("run", "add two numbers", "-m", SMALL, "--yes", "-q", environment=variables)
        assert quiet.returncode == 0, quiet.stderr
        assert not bodies, "off by default, whatever the variables of OpenTelemetry say"
        wanted = {**variables, "SEPTET_TELEMETRY": "on"}
        done = septet("run", "add two numbers", "-m", SMALL, "--yes", "-q", environment=wanted)
        assert done.returncode == 0, done.stderr
    traces = [ExportTraceServiceRequest.FromString(body) for path, body in bodies if path == "/v1/traces"]
    names = {
        span.name
        for request in traces
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert {"invoke_workflow iterate", "invoke_agent coder", "chat small.yaml"} <= names
    metrics = [ExportMetricsServiceRequest.FromString(body) for path, body in bodies if path == "/v1/metrics"]
    assert "gen_ai.client.token.usage" in str(metrics)
    assert b"add two numbers" not in b"".join(body for _, body in bodies)


class Silent(SpanProcessor):
    """Waits for a collector that does not answer before the test says so."""

    def __init__(self) -> None:
        self.answered, self.ended = threading.Event(), threading.Event()

    def shutdown(self) -> None:
        self.answered.wait(60)
        self.ended.set()


@pytest.mark.anyio
async def test_nobody_waits_at_the_end_for_a_collector_that_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    silent = Silent()
    await Telemetry(silent, InMemoryMetricReader()).close()
    assert not silent.ended.is_set()
    assert "telemetry was lost: the collector took nothing" in caplog.text
    silent.answered.set()


def test_a_collector_that_is_not_there_costs_nothing_but_a_moment(septet: Septet) -> None:
    lost = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "SEPTET_TELEMETRY": "on"}
    done = septet("run", "add two numbers", "-m", SMALL, "--yes", "-q", environment=lost)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "telemetry" in line] == done.stderr.splitlines()
    assert "telemetry was lost" in done.stderr, "once, without the exporters' own words of every attempt"
    wrong = septet("list", environment={"SEPTET_TELEMETRY": "loud"})
    assert (wrong.returncode, wrong.stderr.count("\n")) == (0, 0), "who only reads needs no telemetry"
    refused = septet("run", "x", "-m", SMALL, environment={"SEPTET_TELEMETRY": "loud"})
    assert refused.returncode == 5
