"""Metrics, alerts and the Grafana dashboard as a real Prometheus takes them."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from support.application import Application
from support.cases import by_day
from support.prometheus import ALERTS, hastened, prometheus, required
from support.reading import read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.delays import DelayLaneStatus
from light_scheduler.lanes.context.status import LaneStatus, ProbeStatus, TargetStatus
from light_scheduler.lanes.context.tenant_firings import TenantFirings
from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.web.metrics.lanes import registry_of
from light_scheduler.web.metrics.tenants import TenantCollector

pytestmark = pytest.mark.integration

ONE_SECOND_IS = 120
"""How much faster the alerts' durations pass here."""

OF_GONE_WORKERS = {"SchedulerNoWorker", "SchedulerWorkerDown"}
OTHERS = {rule["alert"] for group in hastened(ALERTS, 1)["groups"] for rule in group["rules"]} - OF_GONE_WORKERS
PANELS = json.loads((ALERTS.parent / "dashboard.json").read_text(encoding="utf-8"))["panels"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel.get("targets", ())]
NOTHING_WHEN_WELL = {"Targets that cannot be written to", "Changelog offsets left to restore"}
"""Panels that are empty while every target can be written to."""


class Patient:
    """A worker that is well, or has everything that there are alerts for. Each look at it is a scrape."""

    def __init__(self) -> None:
        self.is_well = True
        self.topics = ["c"]
        self.is_gone = False
        self._faults = 0

    def status(self) -> list[LaneStatus]:
        self._faults += not self.is_well
        return [self._lane(0), self._lane(1)]

    def targets(self) -> list[TargetStatus]:
        since = SystemClock().now() - 100_000
        return (
            []
            if self.is_well
            else [TargetStatus(topic="t", partitions=[], unavailable_since=since, waiting=1, reason="")]
        )

    def tenant_firings(self) -> TenantFirings:
        return TenantFirings(Counter(shop=1))

    def topic_totals(self) -> dict[str, TopicTotals]:
        return {}

    def standbys(self) -> list[Any]:
        return []

    def tables(self) -> dict[Any, Any]:
        return {}

    async def catch_up(self) -> set[tuple[str, int]]:
        return set()

    def lanes(self) -> list[DelayLaneStatus]:
        """No delay rule is at work."""
        return []

    def _lane(self, partition: int) -> LaneStatus:
        is_well = self.is_well or partition == 1
        return LaneStatus(
            topic="c",
            partition=partition,
            state="running" if is_well else "restoring",
            partitions=2 if is_well else 3,
            lag=0 if is_well else 200_000 + 1_000 * self._faults,
            oldest_due=SystemClock().now() + (60_000 if is_well else -100_000),
            clock_skew=0 if is_well else 5_000,
            dead_letters=self._faults,
            restarts=self._faults,
            expired_commands=self._faults,
            probe=ProbeStatus(failures=self._faults),
        )


@pytest.fixture
async def patient() -> AsyncIterator[tuple[Patient, str]]:
    """A worker to be, and where it can be scraped."""
    patient = Patient()
    registry = registry_of(patient, TenantCollector(patient), patient, patient.topics, app_id="app", version="1")  # type: ignore[arg-type]  # needs no more of it

    async def metrics(request: web.Request) -> web.Response:
        del request
        return web.Response(status=503) if patient.is_gone else web.Response(body=generate_latest(registry))

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    async with TestServer(application, host="127.0.0.1") as server:
        yield patient, f"127.0.0.1:{server.port}"


@pytest.mark.soak
async def test_every_alert_fires_and_is_resolved(patient: tuple[Patient, str], tmp_path: Path) -> None:
    worker, address = patient
    async with prometheus(tmp_path, [address], hastened(ALERTS, ONE_SECOND_IS)) as server:

        async def firing(wanted: set[str]) -> None:
            async def is_as_wanted() -> bool:
                return await server.firing() == wanted

            await eventually(is_as_wanted, within=100.0, every=0.1, what=f"{sorted(wanted)} to fire, and nothing else")

        await firing(set())
        worker.is_well = False
        worker.topics.append("deleted")
        await firing(OTHERS)
        worker.is_well = True
        worker.topics.remove("deleted")
        await firing(set())
        worker.is_gone = True
        await firing(OF_GONE_WORKERS)
        worker.is_gone = False
        await firing(set())


async def test_what_a_worker_and_a_node_show_is_as_prometheus_wants_it(application: Application) -> None:
    promtool = required("promtool")
    for processes in ("1", "2"):
        worker = await application.start_worker(processes=processes)
        async with aiohttp.ClientSession() as session, session.get(f"{worker.url}/metrics") as response:
            scraped = await response.read()
        checking = await asyncio.create_subprocess_exec(
            promtool, "check", "metrics", stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        findings = await checking.communicate(scraped)
        assert (checking.returncode, *findings) == (0, b"", b"")
        await worker.end()


@pytest.mark.parametrize("processes", by_day(1, [None, "2"]))
@pytest.mark.soak
async def test_lateness_is_a_native_histogram_for_a_prometheus_that_takes_those(
    application: Application, tmp_path: Path, processes: str | None
) -> None:
    worker = await application.start_worker(**({} if processes is None else {"processes": processes}))
    number = 20
    async with application.client() as client:
        for count in range(number):
            await client.schedule(f"soon-{count}", b"x", topic=application.target, after="1s")
    await read_until(application.bootstrap_servers, [application.target], lambda firings: len(firings) == number)
    address = worker.url.removeprefix("http://")
    async with prometheus(tmp_path, [address], None, "--enable-feature=native-histograms") as server:

        async def counted() -> bool:
            found = await server.query("sum(histogram_count(light_scheduler_lateness_seconds))")
            return bool(found) and float(found[0]["value"][1]) == number

        await eventually(counted, within=60.0, what="a native histogram with all firings")
        (quantile,) = await server.query("histogram_quantile(0.99, sum(light_scheduler_lateness_seconds))")
        assert 0 < float(quantile["value"][1]) < 600
        (below,) = await server.query("histogram_fraction(0, 600, sum(light_scheduler_lateness_seconds))")
        assert float(below["value"][1]) == 1

        async def are_those_of_the_text() -> bool:
            """Return whether all series are scraped that there are: some come when something is counted."""
            async with aiohttp.ClientSession() as session, session.get(f"{worker.url}/metrics") as response:
                in_text = names_of(await response.text())
            scraped = {each["metric"]["__name__"] for each in await server.query('{job="light-scheduler"}')}
            return scraped - OF_PROMETHEUS == in_text

        await eventually(are_those_of_the_text, every=0.2, what="the series of the text format, and no other ones")


OF_PROMETHEUS = {"up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_series_added"} | {
    "scrape_samples_post_metric_relabeling"
}
"""Series that Prometheus itself adds to those of a target."""


def names_of(exposition: str) -> set[str]:
    """Return the names of the series in an exposition of the text format, with one name for all of a histogram."""
    families = list(text_string_to_metric_families(exposition))
    return {
        family.name if family.type == "histogram" else sample.name for family in families for sample in family.samples
    }


@pytest.mark.parametrize("options", by_day(1, [[], ["--enable-feature=native-histograms"]]), ids=["classic", "native"])
@pytest.mark.soak
async def test_every_query_of_the_dashboard_has_an_answer(
    application: Application, tmp_path: Path, options: list[str]
) -> None:
    worker = await application.start_worker(probe_interval="1s")
    async with application.client() as client:
        await client.schedule("later", b"x", topic=application.target, after="1h")
        await client.schedule("soon", b"x", topic=application.target, after="1s")
        await read_until(application.bootstrap_servers, [application.target], lambda firings: len(firings) > 0)
        async with prometheus(tmp_path, [worker.url.removeprefix("http://")], None, *options) as server:
            await client.schedule("next", b"x", topic=application.target, after="1s")
            await read_until(application.bootstrap_servers, [application.target], lambda firings: len(firings) > 1)
            for title, expression in QUERIES:
                expression = expression.replace("$__rate_interval", "30s").replace("$__range", "1m")

                async def answer(expression: str = expression) -> list[dict[str, Any]]:
                    return await server.query(expression)

                if title in NOTHING_WHEN_WELL:
                    await answer()  # it is understood
                else:
                    await eventually(answer, within=60.0, what=f"an answer to {title}")
            buckets = await server.query('{__name__=~"light_scheduler_.+_bucket"}')
            assert bool(buckets) is not bool(options), "native histograms have none"
