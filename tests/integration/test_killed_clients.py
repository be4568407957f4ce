"""A client that is killed between any two calls, or within one, leaves every schedule as a whole call left it."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support.application import Application

from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

CALLS = 3
"""Of one schedule: it is scheduled, rescheduled, and, if its number is odd, cancelled."""

PAYLOAD = b"p" * 1_000

ASYNCIO = """
import asyncio, sys
from light_scheduler import SchedulerClient

async def main():
    async with SchedulerClient(sys.argv[1], app_id=sys.argv[2]) as client:
        for n in range(1000):
            id = f"{sys.argv[4]}-{n}"
            await client.schedule(id, b"p" * 1_000, topic=sys.argv[3], after="1h", headers={"n": str(n)})
            print("done", flush=True)
            await client.reschedule(id, after="2h")
            print("done", flush=True)
            if n % 2:
                await client.cancel(id)
            print("done", flush=True)

asyncio.run(main())
"""
BLOCKING = (
    ASYNCIO.replace("async ", "")
    .replace("await ", "")
    .replace("SchedulerClient", "BlockingSchedulerClient")
    .replace("asyncio.run(main())", "main()")
)


@pytest.fixture(scope="module")
def served(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    application = asyncio.run(Application.create(kafka.bootstrap_servers, tmp_path_factory.mktemp("killed")))
    asyncio.run(application.start_worker())
    yield application
    application.close()


def killed(served: Application, program: str, prefix: str, calls: int, delay_s: float) -> int:
    """Run a client and kill it within `delay_s` after so many calls; return how many have returned."""
    arguments = [served.bootstrap_servers, served.settings.app_id, served.target, prefix]
    child = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout as lines:
        for _ in range(calls):
            assert lines.readline() == "done\n"
        try:
            child.wait(delay_s)
        except subprocess.TimeoutExpired:
            child.kill()
        child.wait(30)
        return calls + lines.read().count("done\n")


def versions(number: int, calls: int) -> set[int | None]:
    """Return the versions that a schedule may have after so many of its calls: the next one may be carried out."""
    after: list[int | None] = [None, 1, 2, None if number % 2 else 2]
    return set(after[calls : calls + 2])


KILLED_AFTER = (*range(2 * CALLS + 1), 3 * CALLS + 1)
"""Calls that have returned: each one of a schedule that stays, of one that is cancelled, and one further on."""


@pytest.mark.parametrize("calls", KILLED_AFTER)
@pytest.mark.parametrize(
    "program", [pytest.param(ASYNCIO, id="asyncio"), pytest.param(BLOCKING, id="blocking", marks=pytest.mark.soak)]
)
async def test_no_schedule_is_half_booked_and_no_call_that_returned_is_lost(
    served: Application, program: str, calls: int
) -> None:
    prefix = f"{'blocking' if program is BLOCKING else 'asyncio'}-{calls}"
    delay_s = random.Random(prefix).uniform(0, 0.02)
    returned = await asyncio.to_thread(killed, served, program, prefix, calls, delay_s)
    async with served.client(url=served.workers[0].url) as client:
        for number in range(returned // CALLS + 2):
            found = await client.get(f"{prefix}-{number}")
            done = min(max(returned - number * CALLS, 0), CALLS)
            assert (None if found is None else found.version) in versions(number, done)
            if found is not None:
                assert found.payload == PAYLOAD
        # What it left is nobody's: the next client changes it at once.
        result = await client.schedule(f"{prefix}-0", b"", topic=served.target, after="3h")
        assert result.version in {(version or 0) + 1 for version in versions(0, min(returned, CALLS))}
