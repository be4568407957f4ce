"""Copy a topic to another cluster: partitions, keys, values, headers and timestamps stay. Start it again to go on.

$ python examples/migrating/shadow.py kafka-1:9092 127.0.0.1:9092 schedules

With --once, it ends when it has copied what is there; else with Ctrl-C.
"""

import asyncio
import sys
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic


async def make_topic(servers: str, topic: str, partitions: int) -> None:
    """Make the topic, or see that it has as many partitions."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, replication_factor=1)])
        (there,) = await admin.describe_topics([topic])
        found = len(there["partitions"])
    finally:
        await admin.close()
    if found != partitions:
        raise SystemExit(f"{topic} has {found} partitions on {servers}, and {partitions} at its source: make it anew")


async def copy(source: str, target: str, topic: str, *, once: bool) -> None:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=source,
        group_id=f"shadow-of-{topic}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=target, enable_idempotence=True) as producer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        await make_topic(target, topic, len(places))
        ends = await consumer.end_offsets(places)
        copied = 0
        while not once or any([await consumer.position(place) < ends[place] for place in places]):
            for place, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    headers = list(record.headers)
                    await producer.send(topic, record.value, record.key, place.partition, record.timestamp, headers)
                copied += len(records)
            await producer.flush()
            await consumer.commit()
        print(f"{copied} records copied")


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(copy(*sys.argv[1:4], once="--once" in sys.argv))
