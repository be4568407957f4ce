"""Spans of OpenTelemetry, made from what a committed cycle of a lane tells."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from light_scheduler.lanes.context.tracing import TracedCycle, TracedEvent, sampled_parent, trace_id_of
from light_scheduler.model import Entry, EventType, Once, Progress, Schedule, Target
from light_scheduler.tracing import MOST_SPANS, OpenTelemetry, resource_of

TRACE, SENDER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{SENDER}-01", f"00-{TRACE}-{SENDER}-00"
BEGUN, COMMITTED, DUE = 1_800_000_000_000, 1_800_000_000_040, 1_799_999_999_990


def entry(*traceparents: bytes | None) -> Entry:
    headers = [("x", b"y"), *(("traceparent", each) for each in traceparents)]
    schedule = Schedule("shop", "order-1", 3, Once(DUE), Target("reminders"), b"p", headers, 0, 0, BEGUN)
    return Entry(schedule, Progress(DUE, 0, sequence=1, attempt=1))


def all_spans_of(*events: EventType) -> list[ReadableSpan]:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traced = [TracedEvent(event, entry(), SAMPLED, None) for event in events]
    OpenTelemetry(provider).record(TracedCycle("commands", 2, BEGUN, COMMITTED, 7, 5, traced))
    return list(exporter.get_finished_spans())


def spans_of(*events: EventType) -> dict[str, ReadableSpan]:
    return {span.name: span for span in all_spans_of(*events)}


def links_of(span: ReadableSpan) -> set[tuple[int, int]]:
    return {(link.context.trace_id, link.context.span_id) for link in span.links}


def test_a_command_is_a_child_of_its_sender_and_linked_to_its_cycle() -> None:
    spans = spans_of(EventType.SCHEDULED)
    command, cycle = spans["schedule scheduled"], spans["cycle"]
    assert command.parent is not None
    assert (command.parent.trace_id, command.parent.span_id) == (int(TRACE, 16), int(SENDER, 16))
    assert links_of(command) == {(cycle.context.trace_id, cycle.context.span_id)}
    assert (command.start_time, command.end_time) == (BEGUN * 1_000_000, COMMITTED * 1_000_000)
    assert command.attributes is not None
    assert command.attributes["light_scheduler.tenant"] == "shop"
    assert command.attributes["light_scheduler.schedule_id"] == "order-1"


def test_a_firing_begins_a_trace_and_is_linked_to_its_command_and_its_cycle() -> None:
    spans = spans_of(EventType.FIRED)
    firing, cycle = spans["schedule fired"], spans["cycle"]
    assert firing.parent is None
    assert firing.context.trace_id != int(TRACE, 16)
    assert links_of(firing) == {
        (int(TRACE, 16), int(SENDER, 16)),
        (cycle.context.trace_id, cycle.context.span_id),
    }
    assert firing.attributes is not None
    assert firing.attributes["light_scheduler.firing_id"] == f"order-1@{DUE}"
    assert firing.attributes["light_scheduler.lateness_ms"] == COMMITTED - DUE


def test_a_cycle_says_how_much_it_did() -> None:
    cycle = spans_of(EventType.SCHEDULED, EventType.FIRED)["cycle"]
    assert cycle.attributes is not None
    assert cycle.attributes["light_scheduler.commands"] == 7
    assert cycle.attributes["light_scheduler.firings"] == 5
    assert cycle.attributes["light_scheduler.partition"] == 2


def test_a_cycle_makes_so_many_spans_at_most_and_counts_the_others() -> None:
    spans = all_spans_of(*[EventType.FIRED] * (MOST_SPANS + 3))
    assert len([span for span in spans if span.name == "schedule fired"]) == MOST_SPANS
    (cycle,) = (span for span in spans if span.name == "cycle")
    assert cycle.attributes is not None
    assert cycle.attributes["light_scheduler.spans_left_out"] == 3


def test_a_cycle_that_leaves_no_span_out_does_not_count_them() -> None:
    assert "light_scheduler.spans_left_out" not in (spans_of(EventType.FIRED)["cycle"].attributes or {})


def test_what_cannot_be_told_fails_no_cycle(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: object, parent_context: object = None) -> None:
            raise RuntimeError("broken")

    provider = TracerProvider()
    provider.add_span_processor(Broken())
    OpenTelemetry(provider).record(TracedCycle("commands", 2, BEGUN, COMMITTED, 7, 5, []))
    assert "cannot make spans of a cycle of commands-2" in caplog.text


@pytest.mark.parametrize(
    ("headers", "parent"),
    [
        ([SAMPLED.encode()], SAMPLED),
        ([UNSAMPLED.encode()], None),
        ([None], None),
        ([b"\xff"], None),
        ([b"00-1"], None),
        ([b"00-1-2-zz"], None),
        ([None, SAMPLED.encode()], SAMPLED),
        ([], None),
    ],
)
def test_only_traces_that_are_recorded_are_gone_on_with(headers: list[bytes | None], parent: str | None) -> None:
    assert sampled_parent(entry(*headers)) == parent


@pytest.mark.parametrize(
    "traceparent",
    [
        f"00-{TRACE}-{SENDER}-01-more",
        f"00-{TRACE}-{SENDER}-01-",
        f"00-{TRACE}-{SENDER}-01\n",
        f"cc-{TRACE}-{SENDER}-01more",
        f"ff-{TRACE}-{SENDER}-01",
        f"0-{TRACE}-{SENDER}-01",
        f"00-{TRACE.upper()}-{SENDER}-01",
        f"00-{'0' * 32}-{SENDER}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}a-{SENDER}-01",
        f"00-{TRACE}-{SENDER}-1",
        f"00-{TRACE}-{SENDER}-{'1' * 9}",
        f"00-{'1' * 1_000_000}-{SENDER}-01",
        f" 00-{TRACE}-{SENDER}-01",
    ],
)
def test_a_traceparent_in_another_form_than_that_of_w3c_belongs_to_no_trace(traceparent: str) -> None:
    assert sampled_parent(entry(traceparent.encode())) is None
    assert trace_id_of(entry(traceparent.encode())) is None


def test_of_a_later_version_only_the_known_fields_are_taken() -> None:
    later = f"cc-{TRACE}-{SENDER}-09"
    assert sampled_parent(entry(later.encode())) == later
    assert sampled_parent(entry(f"{later}-{'more' * 250_000}".encode())) == later
    assert trace_id_of(entry(f"{later}-more".encode())) == TRACE


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "orders"),
        ({"OTEL_SERVICE_NAME": ""}, "orders"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=live"}, "orders"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=scheduler"}, "scheduler"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=scheduler", "OTEL_SERVICE_NAME": "timers"}, "timers"),
    ],
)
def test_the_service_is_named_after_the_application_unless_the_environment_names_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str
) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert resource_of("orders").attributes["service.name"] == name
