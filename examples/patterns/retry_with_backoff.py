"""Process a message, and try again later with growing delays if that fails. Later messages do not wait for it.

$ python examples/clients/make_topic.py payments
$ python examples/patterns/retry_with_backoff.py
attempt 1: the bank does not answer
attempt 2: the bank does not answer
attempt 3: charged 12.50
"""

import asyncio
import os

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer, attempt_of

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")


async def charge(firing: Firing) -> None:
    """Call the bank, which answers the third time. Send it `delivery_id` or your own id, so that it charges once."""
    if attempt_of(firing) < 3:
        print(f"attempt {attempt_of(firing)}: the bank does not answer")
        raise ConnectionError("the bank does not answer")
    print(f"attempt {attempt_of(firing)}: charged {(firing.payload or b'').decode()}")


async def ask_a_person(firing: Firing, error: Exception) -> None:
    print(f"{firing.id} failed for good: {error}")


async def main() -> None:
    async with SchedulerClient(KAFKA) as scheduler:
        consumer = FiringConsumer(scheduler, KAFKA, group_id="payments")

        # In production: initial="5s", longest="1h", attempts=50, which are the defaults.
        @consumer.on_firing("payments", initial="500ms", factor=2, attempts=5, give_up=ask_a_person)
        async def pay(firing: Firing) -> None:
            await charge(firing)
            consumer.stop()

        await scheduler.schedule("payment-1", b"12.50", topic="payments")
        await consumer.run()


asyncio.run(main())
