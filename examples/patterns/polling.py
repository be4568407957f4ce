"""Poll a slow service until its work is done, at growing intervals.

$ python examples/clients/make_topic.py polls
$ python examples/patterns/polling.py
poll 1 of export-7: still running
poll 2 of export-7: still running
poll 3 of export-7: done
nothing is pending: True
"""

import asyncio
import os

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
OFTEN_AT_FIRST = "initial=500ms factor=2 max=1h attempts=50"


def status_of(poll: int) -> str:
    """Stand-in for a call of the slow service."""
    return "done" if poll >= 3 else "still running"


async def main() -> None:
    async with SchedulerClient(KAFKA) as scheduler:
        consumer = FiringConsumer(scheduler, KAFKA, group_id="exports")

        # The function completes the firing itself, and only when the work is done, which ends the series.
        @consumer.on_firing("polls")
        async def poll(firing: Firing) -> None:
            status = status_of(firing.sequence)
            print(f"poll {firing.sequence} of {firing.id}: {status}")
            if status == "done":
                await scheduler.complete(firing)
                consumer.stop()

        await scheduler.schedule("export-7", topic="polls", backoff=OFTEN_AT_FIRST)
        await consumer.run()
        print("nothing is pending:", (await scheduler.cancel("export-7")).outcome == "not_found")


asyncio.run(main())
