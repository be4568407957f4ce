"""A series and the commands for it: pause, resume, reschedule, trigger and complete."""

import asyncio
import os

from aiokafka import AIOKafkaConsumer

from light_scheduler import SchedulerClient
from light_scheduler.client import Cron, derived_id, parse_firing

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")


async def main() -> None:
    async with SchedulerClient(KAFKA) as scheduler:
        report = derived_id("customer-7/weekly-report")  # the same id whenever and wherever this runs
        result = await scheduler.schedule(
            report,
            b"report!",
            topic="reminders",
            trigger=Cron("0 9 * * 1", timezone="Europe/Prague"),
            jitter="5m",
            misfire="skip",
            ack_timeout="1m",
        )
        print(result.outcome, result.next_due)  # scheduled, next Monday
        print((await scheduler.pause(report)).next_due)  # None
        print((await scheduler.resume(report)).next_due)
        print((await scheduler.reschedule(report, every="7d", max_firings=10)).version)  # 2

        async with AIOKafkaConsumer(
            "reminders", bootstrap_servers=KAFKA, isolation_level="read_committed", auto_offset_reset="latest"
        ) as consumer:
            await consumer.seek_to_end()
            print((await scheduler.trigger(report)).outcome)  # triggered: delivered now, in addition to its own times
            async for record in consumer:
                firing = parse_firing(record)
                if firing.id == report:
                    print((await scheduler.complete(firing)).outcome)  # completed: it is not delivered again
                    break
        print((await scheduler.cancel(report)).outcome)  # cancelled


asyncio.run(main())
