"""Traces from command to firing: a real worker sends its spans to a collector over OTLP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.application import Application
from support.reading import read_until
from support.waiting import eventually

pytestmark = pytest.mark.integration

TRACE, SENDER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

Spans = dict[str, list[Any]]


@pytest.fixture
async def collected(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Spans]:
    """Spans by name, as a collector gets them from workers that are started from now on."""
    spans: Spans = {}

    async def take(request: web.Request) -> web.Response:
        export = ExportTraceServiceRequest.FromString(await request.read())
        for of_resource in export.resource_spans:
            for of_scope in of_resource.scope_spans:
                for span in of_scope.spans:
                    known = spans.setdefault(span.name, [])
                    if span.span_id not in {each.span_id for each in known}:  # else it was sent again
                        known.append(span)
        return web.Response(body=b"", content_type="application/x-protobuf")

    application = web.Application()
    application.router.add_post("/v1/traces", take)
    async with TestServer(application, host="127.0.0.1") as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        yield spans


def attributes_of(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def links_of(span: Any) -> set[tuple[str, str]]:
    return {(link.trace_id.hex(), link.span_id.hex()) for link in span.links}


async def test_a_command_and_its_firing_are_linked_and_other_schedules_make_no_spans(
    application: Application, collected: Spans
) -> None:
    worker = await application.start_worker(tracing="true")
    traced, unrecorded = f"00-{TRACE}-{SENDER}-01", f"00-{TRACE}-{SENDER}-00"
    async with application.client() as client:
        await client.schedule("none", b"x", topic=application.target, after="1s")
        await client.schedule("off", b"x", topic=application.target, after="1s", headers={"traceparent": unrecorded})
        await client.schedule("order-1", b"x", topic=application.target, after="1s", headers={"traceparent": traced})
    records = await read_until(application.bootstrap_servers, [application.target], lambda firings: len(firings) == 3)
    assert sorted(value for record in records for name, value in record.headers if name == "traceparent") == [
        unrecorded.encode(),
        traced.encode(),
    ]
    await eventually(lambda: "schedule fired" in collected, what=f"spans of firings among {set(collected)}")
    assert await worker.end() == 0  # it sends what is left

    (command,), (firing,) = collected["schedule scheduled"], collected["schedule fired"]
    cycles = {(span.trace_id.hex(), span.span_id.hex()) for span in collected["cycle"]}
    assert (command.trace_id.hex(), command.parent_span_id.hex()) == (TRACE, SENDER)
    assert firing.parent_span_id == b""
    assert (TRACE, SENDER) in links_of(firing)
    assert links_of(command) < cycles
    assert len(links_of(firing) & cycles) == 1
    for span in (command, firing):
        assert attributes_of(span)["light_scheduler.schedule_id"] == "order-1"
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert attributes_of(firing)["light_scheduler.firing_id"].startswith("order-1@")


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_collector_that_is_away_changes_nothing(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    worker = await application.start_worker(tracing="true")
    headers = {"traceparent": f"00-{TRACE}-{SENDER}-01"}
    async with application.client() as client:
        await client.schedule_many(
            {"id": f"order-{number}", "topic": application.target, "after": 500, "headers": headers}
            for number in range(200)
        )
    await read_until(application.bootstrap_servers, [application.target], lambda firings: len(firings) == 200)
    assert await worker.end() == 0
