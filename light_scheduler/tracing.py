"""Spans of commands, cycles and firings for OpenTelemetry, created from the events that lanes report after a commit.

The span of a command is a child of its sender's span. A firing can be days later, so its span starts a new trace and is
linked to the sender's span. Both are linked to the span of the cycle in which they were committed.

OpenTelemetry's own environment variables configure the destination (`OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, ...). Needs the extra `tracing`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import Timer

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from light_scheduler.lanes.context.tracing import TRACEPARENT, TracedCycle, TracedEvent
from light_scheduler.model import EventType

log = logging.getLogger(__name__)

MOST_SPANS = 500
"""Maximum number of event spans for a cycle, which take about 20 ms in the worker's event loop. The rest is counted."""

CLOSE_S = 3.0
NS_PER_MS = 1_000_000
_PARENTS = TraceContextTextMapPropagator()


def resource_of(app_id: str) -> Resource:
    """Return the resource of spans: a service named by OpenTelemetry's variables, or after the application."""
    named = OTELResourceDetector().detect().attributes.get(SERVICE_NAME)
    return Resource.create({SERVICE_NAME: named or app_id})


class OpenTelemetry:
    """Creates spans with a provider. `give_up` stops its attempts to send them."""

    def __init__(self, provider: TracerProvider, give_up: Callable[[], None] = lambda: None) -> None:
        self._provider = provider
        self._give_up = give_up
        self._tracer = provider.get_tracer("light_scheduler")

    @classmethod
    def over_otlp(cls, app_id: str) -> OpenTelemetry:
        """Send spans over OTLP/HTTP, from a separate thread."""
        provider = TracerProvider(resource=resource_of(app_id))
        exporter = OTLPSpanExporter()
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider, exporter.shutdown)

    def record(self, cycle: TracedCycle) -> None:
        """Create the span of a cycle, and those of its first traced events. Never raises: the cycle is committed."""
        try:
            self._make(cycle)
        except Exception:
            log.exception("cannot make spans of a cycle of %s-%d", cycle.topic, cycle.partition)

    def close(self) -> None:
        """Send remaining spans, for at most CLOSE_S, and stop."""
        giving_up = Timer(CLOSE_S, self._give_up)
        giving_up.start()
        try:
            self._provider.shutdown()
        finally:
            giving_up.cancel()

    def _make(self, cycle: TracedCycle) -> None:
        begun, committed = cycle.begun * NS_PER_MS, cycle.committed * NS_PER_MS
        attributes = {**_place(cycle), **_counts(cycle)}
        own = self._tracer.start_span("cycle", Context(), attributes=attributes, start_time=begun)
        for traced in cycle.events[:MOST_SPANS]:
            self._span(traced, cycle, own).end(committed)
        own.end(committed)

    def _span(self, traced: TracedEvent, cycle: TracedCycle, own: Span) -> Span:
        parent = _PARENTS.extract({TRACEPARENT: traced.traceparent}, Context())
        sender = get_current_span(parent).get_span_context()
        is_firing = traced.event is EventType.FIRED
        return self._tracer.start_span(
            f"schedule {traced.event}",
            Context() if is_firing else parent,
            kind=SpanKind.PRODUCER if is_firing else SpanKind.CONSUMER,
            attributes={**_place(cycle), **_attributes(traced, cycle.committed)},
            links=_links(own, [Link(sender)] if is_firing else []),
            start_time=cycle.begun * NS_PER_MS,
        )


def _links(own: Span, others: Iterable[Link]) -> list[Link]:
    return [Link(own.get_span_context()), *others]


def _place(cycle: TracedCycle) -> dict[str, str | int]:
    return {
        "messaging.system": "kafka",
        "light_scheduler.commands_topic": cycle.topic,
        "light_scheduler.partition": cycle.partition,
    }


def _counts(cycle: TracedCycle) -> dict[str, int]:
    counts = {"light_scheduler.commands": cycle.commands, "light_scheduler.firings": cycle.firings}
    left_out = len(cycle.events) - MOST_SPANS
    return counts if left_out <= 0 else {**counts, "light_scheduler.spans_left_out": left_out}


def _attributes(traced: TracedEvent, committed: int) -> dict[str, str | int]:
    schedule, progress = traced.entry.schedule, traced.entry.progress
    found: dict[str, str | int] = {
        "light_scheduler.tenant": schedule.tenant,
        "light_scheduler.schedule_id": schedule.id,
        "light_scheduler.version": schedule.version,
        "light_scheduler.due": progress.due,
        "light_scheduler.target_topic": schedule.target.topic,
    }
    if traced.event is EventType.FIRED:
        found["light_scheduler.firing_id"] = f"{schedule.id}@{progress.due}"
        found["light_scheduler.attempt"] = progress.attempt
        found["light_scheduler.lateness_ms"] = max(0, committed - progress.due)
    if traced.reason is not None:
        found["light_scheduler.reason"] = traced.reason
    return found
