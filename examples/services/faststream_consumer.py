"""A FastStream application that receives scheduled messages; those that fail come again later, with growing delays.

$ pip install 'light-scheduler[faststream]'
$ python examples/services/faststream_consumer.py
$ light-scheduler schedule --id order-1 --after 2s --target-topic reminders --payload 'pay!'
"""

import asyncio
import os
from typing import Annotated

from faststream import AckPolicy, Depends, FastStream
from faststream.kafka import KafkaBroker

from light_scheduler import SchedulerClient
from light_scheduler.client import Firing, HandlingRules
from light_scheduler.client.faststream import FiringMiddleware, firing_of

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
scheduler = SchedulerClient(KAFKA)
broker = KafkaBroker(KAFKA, middlewares=[FiringMiddleware(scheduler, HandlingRules(initial="1s", attempts=10))])
app = FastStream(broker, on_startup=[scheduler.start], after_shutdown=[scheduler.close])


@broker.subscriber(
    "reminders",
    group_id="mail",
    auto_offset_reset="earliest",
    isolation_level="read_committed",  # without it, firings that were aborted are read too
    ack_policy=AckPolicy.NACK_ON_ERROR,  # commits after the function; the default commits before
)
async def mail(body: bytes, firing: Annotated[Firing, Depends(firing_of)]) -> None:
    print(f"mail for {firing.id}: {body.decode()}", flush=True)


if __name__ == "__main__":
    asyncio.run(app.run())
