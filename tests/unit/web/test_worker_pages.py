"""What a worker tells about itself: liveness, readiness, information, metrics, and its own description."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from light_scheduler.lanes.context.status import ProbeStatus
from light_scheduler.model.lateness import LATENESS_BOUNDS_MS, Lateness
from light_scheduler.tables.status import RestoreStatus, StandbyStatus
from light_scheduler.web.api.operations import OPERATIONS
from light_scheduler.web.limits import slices
from light_scheduler.web.metrics import tenants as tenant_metrics

NOW = 1_800_000_000_000
TOPIC = "light-scheduler-commands"


async def test_a_process_that_answers_is_live(workers: Any) -> None:
    assert await workers[0].json("/live") == {"status": "live"}


async def test_a_process_tells_what_came_of_its_probes_and_is_live_whatever_did(workers: Any) -> None:
    probe = ProbeStatus(successes=3, failures=1, last_success=NOW, latency_ms=21, last_failure=NOW + 5, reason="no way")
    workers[0].lanes.figures = {"probe": probe}
    document = await workers[0].json("/live")
    told = {"topic": TOPIC, "last_success": NOW, "latency_ms": 21, "failures": 1}
    assert document["status"] == "live"
    assert document["probes"] == [{**told, "partition": partition} for _, partition in workers[0].lanes.all]


async def test_a_worker_whose_partitions_all_run_is_ready(workers: Any) -> None:
    assert await workers[0].json("/ready") == {"status": "ready"}


@pytest.mark.parametrize("state", ["created", "fenced", "restoring", "failed", "closing"])
async def test_a_worker_is_not_ready_before_every_partition_runs(workers: Any, state: str) -> None:
    workers[0].lanes.states[TOPIC, 2] = state
    problem = await workers[0].json("/ready", status=503)
    assert problem["reasons"] == [f"{TOPIC}[2] is {state}"]
    assert await workers[1].json("/ready") == {"status": "ready"}


async def test_a_worker_that_restores_says_how_far_it_is_and_how_long_it_will_take(workers: Any) -> None:
    workers[0].lanes.states[TOPIC, 2] = "restoring"
    workers[0].lanes.figures = {
        "restore": RestoreStatus(
            done=250_000, total=1_000_000, records=240_000, seconds=2.5, per_s=100_000, seconds_left=7.5
        )
    }
    assert (await workers[0].json("/ready", status=503))["reasons"] == [
        f"{TOPIC}[2] is restoring: 250,000 of 1,000,000 changelog offsets (25 %), 100,000/s, 8 s left"
    ]
    found = await samples(workers[0])
    lane = (("partition", "2"), ("topic", TOPIC))
    figures = {name: found[name, lane] for name in ("restore_remaining", "restore_seconds", "restored_records")}
    assert figures == {"restore_remaining": 750_000, "restore_seconds": 2.5, "restored_records": 240_000}


async def test_a_worker_is_not_ready_while_an_assigned_partition_has_no_lane(cluster: Any, workers: Any) -> None:
    cluster.distribution[workers[0].url] = {TOPIC: [0, 2, 4]}
    assert (await workers[0].json("/ready", status=503))["reasons"] == [f"{TOPIC}[4] has no lane yet"]


async def test_a_worker_is_not_ready_before_the_first_assignment(cluster: Any, workers: Any) -> None:
    cluster.distribution.clear()
    assert (await workers[0].json("/ready", status=503))["reasons"] == ["no partitions were assigned yet"]


async def test_a_worker_that_was_assigned_nothing_is_ready(cluster: Any) -> None:
    await cluster.start([0], [])
    assert await cluster.workers[1].json("/ready") == {"status": "ready"}


async def test_info_shows_the_worker_its_lanes_and_its_peers(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=2)
    document = await workers[0].json("/info")
    assert document["app_id"] == "light-scheduler"
    assert document["url"] == workers[0].url
    assert document["time"] == NOW
    assert document["commands_topics"] == {TOPIC: "native"}
    assert [(lane["partition"], lane["state"], lane["pending"]) for lane in document["lanes"]] == [
        (0, "running", 0),
        (2, "running", 1),
    ]
    assert document["peers"] == {workers[0].url: {TOPIC: [0, 2]}, workers[1].url: {TOPIC: [1, 3]}}


async def test_tenants_with_the_most_schedules_have_metrics_of_their_own(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant_metrics, "MOST_TENANTS", 2)
    for tenant, schedules in {"few": 1, "more": 2, "most": 4, "none": 0}.items():
        for number in range(schedules):
            cluster.put(f"{tenant}-{number}", tenant=tenant, partition=number % 2 * 2, progress={"paused": number == 1})
    cluster.put("elsewhere", tenant="few", partition=1)
    found = await samples(workers[0])
    of_tenants = {labels: value for (name, labels), value in found.items() if name == "tenant_pending"}
    assert of_tenants == {(("tenant", "most"),): 4, (("tenant", "more"),): 2}
    assert found["other_tenants_pending", ()] == 1


async def test_pending_schedules_have_a_metric_by_state(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=0)
    cluster.put("b", partition=2, tenant="acme")
    cluster.put("c", partition=2, progress={"paused": True})
    found = await samples(workers[0])
    states = {dict(labels)["state"]: value for (name, labels), value in found.items() if name == "state_pending"}
    assert states == {"pending": 2, "paused": 1, "awaiting": 0}


async def test_tenants_have_counters_of_their_firings(workers: Any) -> None:
    workers[0].lanes.firings.add({"default": Counter([1_000, 1_001]), "acme": Counter([1_000])})
    found = await samples(workers[0])
    of_tenants = {labels: value for (name, labels), value in found.items() if name == "tenant_firings_total"}
    assert of_tenants == {(("tenant", "default"),): 2, (("tenant", "acme"),): 1}
    assert found["other_tenants_firings_total", ()] == 0


async def test_tenants_are_counted_slice_by_slice(cluster: Any, workers: Any, rests: list[Any]) -> None:
    for number in range(20):
        cluster.put(f"{number}", tenant=f"t{number}")
    found = await samples(workers[0])
    assert len(rests) >= 40
    assert sum(value for (name, _), value in found.items() if name == "tenant_pending") == 20


async def test_tenants_are_counted_once_for_all_requests_that_wait(
    cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    for number in range(20):
        cluster.put(f"{number}", tenant=f"t{number}")
    enter, leave = slices.LoopTime.__aenter__, slices.LoopTime.__aexit__
    begun: list[slices.LoopTime] = []
    at_once: list[slices.LoopTime] = []

    async def entered(self: slices.LoopTime) -> slices.LoopTime:
        begun.append(self)
        at_once.append(self)
        assert at_once == [self]
        return await enter(self)

    async def left(self: slices.LoopTime, *failure: Any) -> None:
        await leave(self, *failure)
        at_once.remove(self)

    monkeypatch.setattr(slices.LoopTime, "__aenter__", entered)
    monkeypatch.setattr(slices.LoopTime, "__aexit__", left)
    collector = tenant_metrics.TenantCollector(workers[0].lanes)
    counts = [asyncio.create_task(collector.count()) for _ in range(5)]
    await asyncio.sleep(0)
    cluster.put("new", tenant="new")
    await asyncio.gather(*counts)
    assert len(begun) == 2
    tenants, *_ = collector.collect()
    assert len(tenants.samples) == 21

    given_up = asyncio.create_task(collector.count())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(collector.count())
    await asyncio.sleep(0)
    given_up.cancel()
    await waiting
    assert len(begun) == 4, "a count that was given up counts for nobody"


async def samples(worker: Any) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    async with worker.client.get("/metrics") as response:
        assert response.status == 200
        assert response.headers["Content-Type"].startswith("text/plain; version=")
        text = await response.text()
    return {
        (sample.name.removeprefix("light_scheduler_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_metrics_tell_of_probes_that_were_sent(workers: Any) -> None:
    lane = (("partition", "2"), ("topic", TOPIC))

    async def of_probes() -> dict[str, float]:
        found = await samples(workers[0])
        return {name: value for (name, labels), value in found.items() if name.startswith("probe_") and labels == lane}

    assert await of_probes() == {"probe_successes_total": 0, "probe_failures_total": 0}
    workers[0].lanes.figures = {"probe": ProbeStatus(successes=3, failures=1, last_success=NOW, latency_ms=21)}
    assert await of_probes() == {
        "probe_last_success_timestamp_seconds": NOW / 1_000,
        "probe_latency_seconds": 0.021,
        "probe_successes_total": 3,
        "probe_failures_total": 1,
    }


async def test_metrics_are_the_lanes_own_figures(cluster: Any, workers: Any) -> None:
    cluster.put("a", partition=2)
    lateness = Lateness()
    lateness.observe(0)
    lateness.observe(5, firings=2)
    lateness.observe(10_000_000)
    workers[0].lanes.figures = {
        "outcomes": {"scheduled": 3, "cancelled": 1},
        "firings": 4,
        "lag": 12,
        "oldest_due": NOW,
        "lateness": lateness,
    }
    found = await samples(workers[0])
    lane = (("partition", "2"), ("topic", TOPIC))

    def of_lane(name: str, **labels: str) -> float:
        return found[name, tuple(sorted([*lane, *labels.items()]))]

    assert of_lane("pending") == 1
    assert of_lane("firings_total") == 4
    assert of_lane("command_lag") == 12
    assert of_lane("next_due_timestamp_seconds") == NOW / 1_000
    assert of_lane("commands_total", outcome="scheduled") == 3
    assert of_lane("lane_state", state="running") == 1
    assert of_lane("lateness_seconds_bucket", le="0.001") == 1
    assert of_lane("lateness_seconds_bucket", le="0.005") == 3
    assert of_lane("lateness_seconds_bucket", le="600.0") == 3
    assert of_lane("lateness_seconds_bucket", le="+Inf") == 4
    assert of_lane("lateness_seconds_count") == 4
    assert of_lane("lateness_seconds_sum") == pytest.approx(10_000.010)
    assert of_lane("lateness_max_seconds") == 10_000
    assert ("process_cpu_seconds_total", ()) in found


async def test_warm_copies_of_other_partitions_are_shown_and_measured(workers: Any) -> None:
    workers[0].lanes.copies = [
        StandbyStatus(topic=TOPIC, partition=1, pending=12, lag=3),
        StandbyStatus(topic=TOPIC, partition=3, reason="nobody answers"),
    ]
    copies = (await workers[0].json("/info"))["standbys"]
    assert [(copy["partition"], copy["pending"], copy["lag"], copy["reason"]) for copy in copies] == [
        (1, 12, 3, None),
        (3, 0, None, "nobody answers"),
    ]
    found = await samples(workers[0])
    first, second = ((("partition", str(number)), ("topic", TOPIC)) for number in (1, 3))
    assert (found["standby_pending", first], found["standby_lag", first]) == (12, 3)
    assert found["standby_pending", second] == 0
    assert ("standby_lag", second) not in found


async def test_what_a_lane_does_not_know_is_not_among_the_metrics(workers: Any) -> None:
    names = {name for name, _ in await samples(workers[0])}
    assert "pending" in names
    assert not names & {"command_lag", "input_position", "next_due_timestamp_seconds"}


def test_lateness_buckets_include_their_bounds() -> None:
    lateness = Lateness()
    for bound in LATENESS_BOUNDS_MS:
        lateness.observe(bound)
    assert lateness.counts == [*[1] * len(LATENESS_BOUNDS_MS), 0]


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if "$ref" in node else set()
        return own.union(*(references(value) for value in node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


async def test_the_openapi_document_describes_every_operation(workers: Any) -> None:
    document = await workers[0].json("/api/v1/openapi.json")
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {operation.path for operation in OPERATIONS}
    schemas = document["components"]["schemas"]
    assert {reference.removeprefix("#/components/schemas/") for reference in references(document)} <= schemas.keys()
    described = {
        (path, method): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert described.keys() == {(operation.path, operation.method) for operation in OPERATIONS}
    for (path, _), operation in described.items():
        in_path = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert in_path == re.findall(r"{(\w+)}", path)
        assert any(status.startswith("2") for status in operation["responses"])
    identifiers = [operation["operationId"] for operation in described.values()]
    assert len(set(identifiers)) == len(identifiers)


async def test_the_openapi_document_has_the_parameters_of_a_list(workers: Any) -> None:
    document = await workers[0].json("/api/v1/openapi.json")
    listing = document["paths"]["/api/v1/tenants/{tenant}/schedules"]["get"]
    in_query = {each["name"]: each["schema"] for each in listing["parameters"] if each["in"] == "query"}
    assert list(in_query) == [
        *("id_prefix", "id_contains", "target_topic", "partition", "state", "label", "label_contains"),
        *("due_from", "due_to", "sort", "limit", "cursor"),
    ]
    assert in_query["limit"] == {"type": "integer", "minimum": 1, "maximum": 1000, "default": 300}
    assert in_query["sort"] == {"enum": ["due", "id"], "default": "id"}
    assert set(listing["responses"]) == {"200", "400", "401", "403", "404", "429", "503", "default"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/dashboard/main.js", 200),
        ("GET", "/live", 200),
        ("GET", "/nothing", 404),
        ("POST", "/live", 405),
    ],
)
async def test_every_answer_tells_browsers_to_be_careful(workers: Any, method: str, path: str, status: int) -> None:
    async with workers[0].client.request(method, path) as response:
        assert response.status == status
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Cache-Control"] == "no-store"
        if status >= 400:
            assert response.content_type == "application/problem+json"
            assert (await response.json(content_type=None))["status"] == status
        if status == 405:
            assert response.headers["Allow"] == "GET,HEAD"


async def test_a_failure_is_logged_and_tells_the_client_nothing(
    workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(workers[0].lanes, "status", fail)
    problem = await workers[0].json("/info", status=500)
    assert "secret" not in str(problem)
    assert "a secret" in caplog.text
