"""Copy a topic to another cluster: partitions, keys, values, headers and timestamps stay. Start it again to continue.

$ python examples/migrating/shadow.py kafka-1:9092 127.0.0.1:9092 schedules

It copies until Ctrl-C; with --once, it ends when it has copied all existing records. If the source needs TLS or a
login, put these settings into a file: --source-config source.toml
"""

import argparse
import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from light_scheduler.settings import load_settings


async def make_topic(servers: str, topic: str, partitions: int) -> None:
    """Create the topic, or check that it has this number of partitions."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, replication_factor=1)])
        (there,) = await admin.describe_topics([topic])
        found = len(there["partitions"])
    finally:
        await admin.close()
    if found != partitions:
        raise SystemExit(
            f"{topic} has {found} partitions on {servers}, and {partitions} at its source: "
            f"start `light-scheduler up` with --partitions {partitions} and a new --data-dir"
        )


async def copy(source: dict[str, Any], target: str, topic: str, *, once: bool) -> None:
    consumer = AIOKafkaConsumer(
        topic,
        group_id=f"shadow-of-{topic}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        **source,
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=target, enable_idempotence=True) as producer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        await make_topic(target, topic, len(places))
        ends = await consumer.end_offsets(places)
        copied = 0
        while not once or any([await consumer.position(place) < ends[place] for place in places]):
            sent = [
                await producer.send(
                    *(topic, record.value, record.key, place.partition, record.timestamp, list(record.headers))
                )
                for place, records in (await consumer.getmany(timeout_ms=500)).items()
                for record in records
            ]
            await asyncio.gather(*sent)  # raises what the target refused: nothing after it is committed
            await consumer.commit()
            copied += len(sent)
        print(f"{copied} records copied")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", help="kafka-1:9092")
    parser.add_argument("target", help="127.0.0.1:9092")
    parser.add_argument("topic")
    parser.add_argument("--once", action="store_true", help="End when everything that is there is copied.")
    parser.add_argument("--source-config", type=Path, help="Settings file with the TLS and the login of the source.")
    given = parser.parse_args()
    secured = load_settings(file=given.source_config).connection.aiokafka() if given.source_config else {}
    await copy({**secured, "bootstrap_servers": given.source}, given.target, given.topic, once=given.once)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
