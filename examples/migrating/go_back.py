"""Mark what light-scheduler has delivered in the topic of another scheduler, so that the other one does not repeat it.

$ python examples/migrating/go_back.py schedules --config light-scheduler.toml
$ python examples/migrating/go_back.py schedules --config light-scheduler.toml --write

Stop all workers first. The program finds the keys whose last event in the history is `fired`, and leaves out those that
producers have written again since. With --write, it writes a null value for each; for Karafka, a cancel. Settings are
those of the workers.

The history does not say from which commands topic a schedule came. If there are several, an event counts only if its
due time and target are those of the key's last record. What was rescheduled or triggered here is then named and left
out.
"""

import argparse
import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Once, ScheduleCommand
from light_scheduler.settings import Settings, load_settings
from light_scheduler.wire import Dialect, dialect_named

TYPE_OF_KARAFKA = "schedule_source_type"
CANCEL_OF_KARAFKA = [("schedule_schema_version", b"1.0.0"), (TYPE_OF_KARAFKA, b"cancel")]
UNCERTAIN = "an id of another commands topic has fired, or this one at another time or to another topic"

Place = tuple[int, bytes]
Aim = tuple[int, str]


async def records_of(topic: str, kafka: dict[str, Any]) -> AsyncIterator[ConsumerRecord]:
    """Yield all records that are in a topic now."""
    async with AIOKafkaConsumer(
        topic, isolation_level="read_committed", auto_offset_reset="earliest", **kafka
    ) as consumer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        ends = await consumer.end_offsets(places)
        while any([await consumer.position(place) < ends[place] for place in places]):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                for record in records:
                    yield record


async def positions_of(settings: Settings, kafka: dict[str, Any]) -> dict[TopicPartition, int]:
    """Return up to where the workers have read the commands topics."""
    admin = AIOKafkaAdminClient(**kafka)
    await admin.start()
    try:
        positions = await admin.list_consumer_group_offsets(settings.app_id)
        return {place: position.offset for place, position in positions.items()}
    finally:
        await admin.close()


def ends_a_schedule(record: ConsumerRecord, dialect: str) -> bool:
    if dialect == "karafka":
        return dict(record.headers).get(TYPE_OF_KARAFKA) in (b"cancel", b"tombstone")
    return record.value is None


def ids_of(key: bytes) -> tuple[str, str]:
    """Return the ids that a key can have: its text, or its base64 if it is no plain text."""
    return key.decode(errors="replace"), f"base64:{b64encode(key).decode()}"


def aim_of(record: ConsumerRecord, dialect: Dialect) -> Aim | None:
    """Return the due time and target topic of a schedule; None if the record is none that can be read."""
    try:
        command = dialect.decode(record)
    except InvalidCommand:
        return None
    if not isinstance(command, ScheduleCommand) or not isinstance(command.timing, Once):
        return None
    return command.timing.at, command.target.topic


async def waiting(settings: Settings, topic: str, dialect: Dialect) -> dict[Place, Aim | None]:
    """Return what the topic still holds as a schedule and the workers have read."""
    kafka = settings.connection.aiokafka()
    last: dict[Place, ConsumerRecord] = {}
    async for record in records_of(topic, kafka):
        if record.key is not None:
            last[record.partition, record.key] = record
    positions = await positions_of(settings, kafka)
    return {
        (partition, key): aim_of(record, dialect)
        for (partition, key), record in last.items()
        if record.offset < positions.get(TopicPartition(topic, partition), 0)
        and not ends_a_schedule(record, dialect.name)
    }


async def delivered(settings: Settings, topic: str, dialect: Dialect) -> tuple[list[Place], list[Place]]:
    """Return partitions and keys of what light-scheduler has delivered and the topic still holds as a schedule.

    Then those of which that is not certain.
    """
    held = await waiting(settings, topic, dialect)
    places = {(partition, id): (partition, key) for partition, key in held for id in ids_of(key)}
    last: dict[Place, str] = {}
    last_of_aim: dict[Place, str] = {}
    async for record in records_of(settings.topics.history, settings.connection.aiokafka()):
        event = json.loads(record.value)
        place = places.get((event["partition"], event["id"]))
        if place is None or event["tenant"] != DEFAULT_TENANT:
            continue
        last[place] = event["event"]
        if (event["due"], event["target_topic"]) == held[place]:
            last_of_aim[place] = event["event"]
    certain = last if len(settings.inputs) == 1 else last_of_aim
    found = [place for place in held if certain.get(place) == "fired"]
    return found, [place for place in held if last.get(place) == "fired" and certain.get(place) != "fired"]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("topic", help="The commands topic.")
    parser.add_argument("--config", type=Path, help="Settings file. Default: light-scheduler.toml, if it exists.")
    parser.add_argument("--write", action="store_true", help="Write. Without it, only print the keys.")
    given = parser.parse_args()
    settings = load_settings(file=given.config)
    dialects = {source.name: source.dialect for source in settings.inputs}
    if dialects.get(given.topic) not in ("etf1", "karafka", "skyuk"):
        parser.error(f"{given.topic} is not in commands_topics with the dialect etf1, karafka or skyuk")
    found, uncertain = await delivered(settings, given.topic, dialect_named(dialects[given.topic]))
    headers = CANCEL_OF_KARAFKA if dialects[given.topic] == "karafka" else None
    async with AIOKafkaProducer(**settings.connection.aiokafka(), enable_idempotence=True) as producer:
        sent = []
        for partition, key in found:
            print(f"partition {partition}: {key!r}")
            if given.write:
                sent.append(await producer.send(given.topic, None, key, partition, headers=headers))
        await asyncio.gather(*sent)
    for partition, key in uncertain:
        print(f"partition {partition}: {key!r} is left out: {UNCERTAIN}")
    print(f"{len(found)} keys delivered" + ("" if given.write else "; add --write to mark them"))


if __name__ == "__main__":
    asyncio.run(main())
