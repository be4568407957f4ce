"""A saga: send a request, and undo the order if no answer comes in time.

Request and time-out are one Kafka transaction: both exist, or neither.

$ python examples/clients/make_topic.py payment-requests payment-timeouts
$ python examples/patterns/request_timeout.py
order-1 is paid: time-out cancelled
order-2 is not paid in time: release its stock
"""

import asyncio
import os

from aiokafka import AIOKafkaProducer

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, FiringConsumer, record_for

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
TIMEOUT = "2s"  # in a shop: 15m


async def request_payment(producer: AIOKafkaProducer, order: str) -> None:
    timeout = record_for(order, b"release its stock", "payment-timeouts", TIMEOUT, id=f"timeout-{order}")
    async with producer.transaction():
        await producer.send("payment-requests", key=order.encode(), value=b"12.50")
        await producer.send(**timeout.aiokafka())


async def on_paid(scheduler: SchedulerClient, order: str) -> None:
    """Continue with an order, or refund the payment. Only the outcome of the cancel decides."""
    result = await scheduler.cancel(f"timeout-{order}", key=order)
    if result.outcome == "cancelled":
        print(f"{order} is paid: time-out cancelled")
    else:  # not_found: the time-out was delivered, and the stock is released
        print(f"{order} is paid too late: send the money back")


async def main() -> None:
    async with (
        SchedulerClient(KAFKA) as scheduler,
        AIOKafkaProducer(bootstrap_servers=KAFKA, transactional_id="orders") as producer,
    ):
        consumer = FiringConsumer(scheduler, KAFKA, group_id="orders")

        @consumer.on_firing("payment-timeouts")
        async def undo(firing: Firing) -> None:
            order, text = (firing.key or b"").decode(), (firing.payload or b"").decode()
            print(f"{order} is not paid in time: {text}")
            consumer.stop()

        await request_payment(producer, "order-1")
        await request_payment(producer, "order-2")
        await on_paid(scheduler, "order-1")  # the answer of the payment service
        await consumer.run()


asyncio.run(main())
