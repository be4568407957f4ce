"""Read the messages delivered to a topic, and how late they were sent: `python read_firings.py reminders [count]`."""

import asyncio
import os
import sys

from aiokafka import AIOKafkaConsumer

from light_scheduler.client import parse_firing
from light_scheduler.errors import FormatError


async def main(topic: str, count: int = 1_000_000) -> None:
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=os.environ.get("KAFKA", "127.0.0.1:9092"),
        isolation_level="read_committed",  # without it, firings of aborted transactions appear too
        auto_offset_reset="earliest",
    ) as consumer:
        async for record in consumer:
            try:
                firing = parse_firing(record)
            except FormatError:
                print("not from the scheduler:", record.value)
            else:
                late = firing.fired_at - firing.due
                print(f"{firing.firing_id} v{firing.version}: {firing.payload!r} {firing.headers}, {late} ms after due")
            count -= 1
            if count == 0:
                return


asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
