"""Mark what light-scheduler has delivered in the topic of another scheduler, so that the other one does not repeat it.

$ python examples/migrating/go_back.py schedules --config light-scheduler.toml
$ python examples/migrating/go_back.py schedules --config light-scheduler.toml --write

Stop all workers and producers first. The program finds the keys whose last event in the history is `fired`, and skips
keys that producers have written again since. With --write, it writes a null value for each; for Karafka, a cancel. Use
the settings of the workers.

The history does not say from which commands topic a schedule came. If there are several, an event counts only if its
due time and target are those of the key's last record. Schedules that were rescheduled or triggered here are then
printed and skipped.
"""

import argparse
import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, EventType, Once, ScheduleCommand
from light_scheduler.settings import Settings, load_settings
from light_scheduler.wire import decode_history, dialect_named
from light_scheduler.wire.dialects.compatible import CompatibleDialect
from light_scheduler.wire.dialects.reading import id_of

CANCEL_OF_KARAFKA = [("schedule_schema_version", b"1.0.0"), ("schedule_source_type", b"cancel")]
UNCERTAIN = "an id of another commands topic has fired, or this one at another time or to another topic"

Place = tuple[int, bytes]
"""A partition and a key."""

Aim = tuple[int, str]
"""A due time and a target topic."""


class Last(NamedTuple):
    """The last record of a key. `aim` is None if it is not a readable schedule."""

    offset: int
    aim: Aim | None
    is_end: bool


async def records_of(topic: str, kafka: dict[str, Any]) -> AsyncIterator[ConsumerRecord]:
    """Yield all records that a topic has now."""
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
    """Return the positions up to which the workers have read the commands topics."""
    admin = AIOKafkaAdminClient(**kafka)
    await admin.start()
    try:
        positions = await admin.list_consumer_group_offsets(settings.app_id)
        return {place: position.offset for place, position in positions.items()}
    finally:
        await admin.close()


def aim_of(record: ConsumerRecord, dialect: CompatibleDialect) -> Aim | None:
    """Return the due time and target topic of a schedule; None if the record is not a readable schedule."""
    try:
        command = dialect.decode(record)
    except InvalidCommand:
        return None
    if not isinstance(command, ScheduleCommand) or not isinstance(command.timing, Once):
        return None
    return command.timing.at, command.target.topic


async def last_of(settings: Settings, topic: str, dialect: CompatibleDialect) -> dict[Place, Last]:
    """Return the last record of each key."""
    last: dict[Place, Last] = {}
    async for record in records_of(topic, settings.connection.aiokafka()):
        if record.key is not None:
            place = record.partition, record.key
            last[place] = Last(record.offset, aim_of(record, dialect), dialect.cancels(record))
    return last


async def delivered(settings: Settings, topic: str, dialect: CompatibleDialect) -> tuple[list[Place], list[Place]]:
    """Return partitions and keys of the schedules that light-scheduler has delivered and that the topic still contains.

    Also returns those of which that is uncertain.
    """
    last = await last_of(settings, topic, dialect)
    positions = await positions_of(settings, settings.connection.aiokafka())
    held = {
        (partition, key): each.aim
        for (partition, key), each in last.items()
        if each.offset < positions.get(TopicPartition(topic, partition), 0) and not each.is_end
    }
    places = {(partition, id_of(key)): (partition, key) for partition, key in held}
    event_of: dict[Place, EventType] = {}
    event_of_aim: dict[Place, EventType] = {}
    async for record in records_of(settings.topics.history, settings.connection.aiokafka()):
        event = decode_history(record.value)
        place = places.get((event.partition, event.id)) if event.partition is not None else None
        if place is None or event.tenant != DEFAULT_TENANT:
            continue
        event_of[place] = event.event
        if (event.due, event.target_topic) == held[place]:
            event_of_aim[place] = event.event
    certain = event_of if len(settings.inputs) == 1 else event_of_aim
    found = [place for place in held if certain.get(place) is EventType.FIRED]
    uncertain = [place for place in held if event_of.get(place) is EventType.FIRED and place not in found]
    return found, uncertain


async def written_since(settings: Settings, topic: str, dialect: CompatibleDialect, found: list[Place]) -> list[Place]:
    """Return the places that have been written to while the history was read."""
    positions = await positions_of(settings, settings.connection.aiokafka())
    last = await last_of(settings, topic, dialect)
    return [
        (partition, key)
        for partition, key in found
        if last[partition, key].offset >= positions.get(TopicPartition(topic, partition), 0)
    ]


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
    dialect = cast(CompatibleDialect, dialect_named(dialects[given.topic]))
    found, uncertain = await delivered(settings, given.topic, dialect)
    if given.write and await written_since(settings, given.topic, dialect, found):
        raise SystemExit("producers write meanwhile to keys that were found: stop them, and start again")
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
