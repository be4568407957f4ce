"""Jobs declared in code: a batch every night, and a check every hour. Each deployment synchronises them.

$ python examples/clients/make_topic.py jobs
$ python examples/patterns/nightly_batch.py deploy
+ close_the_day cron=30 2 * * * timezone=Europe/Prague topic=jobs
+ count_stock every=1h topic=jobs
= 0 unchanged
$ python examples/patterns/nightly_batch.py deploy
= 2 unchanged
$ light-scheduler trigger close_the_day
$ python examples/patterns/nightly_batch.py work 1
close_the_day: run 1
"""

import asyncio
import os
import sys

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
scheduler = SchedulerClient(KAFKA, url=os.environ.get("SCHEDULER", "http://127.0.0.1:6066"))


# 02:30 in Prague, once per night, even when clocks change. A failed run is delivered again, up to 3 attempts in all.
@scheduler.cron("30 2 * * *", timezone="Europe/Prague", topic="jobs", ack_timeout="1h", max_attempts=3)
async def close_the_day(firing: Firing) -> None:
    print(f"{firing.id}: run {firing.sequence}")


@scheduler.every("1h", topic="jobs", misfire="skip", ack_timeout="5m")
async def count_stock(firing: Firing) -> None:
    print(f"{firing.id}: run {firing.sequence}")


async def deploy() -> None:
    """Make the pending schedules match the declared ones. `remove` cancels jobs that are no longer in this file."""
    async with scheduler:
        print(await scheduler.sync("shop", remove=True))


async def work(runs: int) -> None:
    """Run jobs until `runs` of them have run. You can start any number of these processes."""
    consumer = FiringConsumer(scheduler, KAFKA, group_id="shop-jobs")

    @consumer.on_firing("jobs", completes=True)
    async def run(firing: Firing) -> None:
        nonlocal runs
        await scheduler.job_of(firing)(firing)
        runs -= 1
        if runs == 0:
            consumer.stop()

    async with scheduler:
        await consumer.run()


asyncio.run(deploy() if sys.argv[1] == "deploy" else work(int(sys.argv[2])))
