"""Remind a customer of an abandoned cart, unless it is bought first.

$ python examples/clients/make_topic.py carts
$ python examples/patterns/delayed_notification.py
cart-1 is bought: reminder cancelled
cart-2 is left behind: mail to bob@example.com
"""

import asyncio
import json
import os

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
DELAY = "2s"  # in a shop: 24h


async def main() -> None:
    async with SchedulerClient(KAFKA) as scheduler:
        consumer = FiringConsumer(scheduler, KAFKA, group_id="mailer")

        @consumer.on_firing("carts")
        async def remind(firing: Firing) -> None:
            print(f"{firing.id} is left behind: mail to {json.loads(firing.payload or b'')['email']}")
            consumer.stop()

        # Scheduling an id again moves its reminder: do so whenever the cart changes.
        for cart, email in {"cart-1": "ann@example.com", "cart-2": "bob@example.com"}.items():
            await scheduler.schedule(cart, json.dumps({"email": email}).encode(), topic="carts", after=DELAY)

        result = await scheduler.cancel("cart-1")
        print(f"cart-1 is bought: reminder {result.outcome}")
        await consumer.run()


asyncio.run(main())
