"""A workflow that waits for a person: it continues with the answer, or differently if there is none in time.

The suspended workflow is one schedule: its payload is the next step, its due time the end of the wait. An answer
replaces the payload and the time, if the schedule has not changed since the workflow was suspended.

$ python examples/clients/make_topic.py workflow-steps
$ python examples/patterns/suspended_workflow.py
claim-1: approved, goes on
claim-1: pay
claim-2: remind the boss
claim-2: approved too late
"""

import asyncio
import os

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
PATIENCE = "2s"  # in an office: 2d
STEPS = "workflow-steps"


async def suspend(scheduler: SchedulerClient, claim: str) -> int:
    """Wait for an approval. Return the version to resume, which belongs in the link in the mail to the boss."""
    result = await scheduler.schedule(claim, b"remind the boss", topic=STEPS, after=PATIENCE)
    return result.version or 0


async def approve(scheduler: SchedulerClient, claim: str, version: int) -> None:
    result = await scheduler.schedule(
        claim, b"pay", topic=STEPS, expected_version=version, raise_on_refusal=False
    )  # without a time: now
    print(f"{claim}: approved" + (", goes on" if result.outcome == "updated" else " too late"))


async def main() -> None:
    async with SchedulerClient(KAFKA) as scheduler:
        consumer = FiringConsumer(scheduler, KAFKA, group_id="workflow")

        @consumer.on_firing(STEPS)
        async def step(firing: Firing) -> None:
            print(f"{firing.id}: {(firing.payload or b'').decode()}")
            if firing.id == "claim-2":
                consumer.stop()

        first = await suspend(scheduler, "claim-1")
        await approve(scheduler, "claim-1", first)
        second = await suspend(scheduler, "claim-2")
        await consumer.run()
        await approve(scheduler, "claim-2", second)


asyncio.run(main())
