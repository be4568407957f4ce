"""Schedule a message, move it, cancel it, and see what the scheduler answers."""

import asyncio
import os

from light_scheduler import SchedulerClient


async def main() -> None:
    async with SchedulerClient(os.environ.get("KAFKA", "127.0.0.1:9092")) as scheduler:
        result = await scheduler.schedule("order-1", b"pay!", topic="reminders", after="15m")
        print(result.outcome, result.version)  # scheduled 1
        result = await scheduler.schedule("order-1", b"pay now!", topic="reminders", after="5m")
        print(result.outcome, result.version)  # updated 2
        print((await scheduler.cancel("order-1")).outcome)  # cancelled
        print((await scheduler.cancel("order-1")).outcome)  # not_found
        await scheduler.schedule("order-2", b"hello", topic="reminders", after="2s", headers={"kind": "greeting"})


asyncio.run(main())
