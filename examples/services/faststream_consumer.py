"""A FastStream application that receives scheduled messages; failed ones are delivered again with growing delays.

$ pip install 'light-scheduler[faststream]'
$ python examples/services/faststream_consumer.py
$ light-scheduler schedule --id order-1 --after 2s --target-topic reminders --payload 'pay!'
"""

import asyncio
import os

from faststream import FastStream
from faststream.kafka import KafkaBroker

from light_scheduler import SchedulerClient
from light_scheduler.client.faststream import Firing, FiringSubscribers

KAFKA = os.environ.get("KAFKA", "127.0.0.1:9092")
scheduler = SchedulerClient(KAFKA)
broker = KafkaBroker(KAFKA)
subscribers = FiringSubscribers(broker, scheduler, group_id="mail")
app = FastStream(broker, on_startup=[scheduler.start], after_shutdown=[scheduler.close])


@subscribers.on_firing("reminders", initial="1s", attempts=10)
async def mail(body: bytes, firing: Firing) -> None:
    print(f"mail for {firing.id}: {body.decode()}", flush=True)


if __name__ == "__main__":
    asyncio.run(app.run())
