"""Logins that expire, tokens that run out, and certificates that are renewed while a worker fires under load.

A broker with `connections.max.reauth.ms` closes a connection on the first request after its login has expired.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from support.acls import grant
from support.application import Application
from support.arrivals import Arrivals
from support.least_rights import producer_rights, worker_rights
from support.rotation import rotating
from support.secured import SecuredKafka, secured_kafka
from support.waiting import eventually
from support.witness import Witness

from light_scheduler.bench.figures import p99_by_second
from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.settings import load_settings

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

LOGIN_S, TOKEN_S = 10, 20
"""How long a password and a token let one in; a token also where the listener would let it in for longer."""

PER_S = 500
SECONDS = 40
LEAD_MS = 8_000
ARRIVE_S = 60.0
LATE_MS = 1_000
"""Of 99 % of what is due in any second, on a machine that does nothing else."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured"), login_ms=LOGIN_S * 1_000, token_life_s=TOKEN_S) as kafka:
        yield kafka


@pytest.fixture
async def application(secured: SecuredKafka, tmp_path: Path) -> AsyncIterator[Application]:
    application = await Application.create(secured.servers, tmp_path)
    yield application
    application.close()


def requests(target: str, start: int) -> Iterator[ScheduleRequest]:
    for number in range(PER_S * SECONDS):
        yield {"id": f"s-{number}", "topic": target, "at": start + number * 1_000 // PER_S}


@pytest.mark.soak
@pytest.mark.parametrize("mechanism", [pytest.param("SCRAM-SHA-512", marks=pytest.mark.every_case), "OAUTHBEARER"])
@pytest.mark.every_case
async def test_nothing_is_lost_doubled_or_late_while_logins_expire_and_certificates_are_renewed(
    secured: SecuredKafka,
    application: Application,
    tmp_path: Path,
    witness: Witness,
    record_property: Callable[[str, object], None],
    mechanism: str,
) -> None:
    count, target = PER_S * SECONDS, application.target
    with rotating(secured, tmp_path / "rotation", mechanism) as rotation:
        settings = load_settings({**rotation.settings, "app_id": application.settings.app_id}, environment={})
        rights = [*worker_rights(settings, [target]), *producer_rights(settings)]
        grant(secured.servers, secured.principal(mechanism), rights)
        worker = await application.start_worker(**rotation.settings)
        start = SystemClock().now() + LEAD_MS
        async with application.client() as client:
            await client.schedule_many(requests(target, start))
        with Arrivals(application.bootstrap_servers, [target]) as arrivals:
            seen = arrivals.seen[target]
            await eventually(lambda: len(seen) >= count // 10, within=ARRIVE_S)
            await asyncio.to_thread(rotation.renew)
            await arrivals.await_count(target, count, SECONDS + ARRIVE_S)
        lanes = (await worker.get("/info"))["lanes"]
        assert await worker.end() == 0

    assert Counter(arrival.id for arrival in seen) == {f"s-{number}": 1 for number in range(count)}
    assert min(arrival.lateness for arrival in seen) >= 0
    seconds = p99_by_second((arrival.due, arrival.lateness) for arrival in seen)
    record_property("lateness_p99_ms_by_second", list(seconds.values()))
    late = {second: p99 for second, p99 in seconds.items() if p99 >= LATE_MS}
    assert late == {}, f"the longest transaction of a witness took {witness.longest_ms} ms"
    assert sum(lane["restarts"] for lane in lanes) == 0
