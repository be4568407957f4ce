"""The dialect of etf1's kafka-message-scheduler.

    record                                         message
    key                     id of the schedule     scheduler-target-key, or null
    value                   payload; null: delete  payload
    scheduler-epoch         due, in seconds        as given, like all headers
    scheduler-target-topic  target topic           as given
    scheduler-target-key    the message's key      as given
                                                   scheduler-timestamp  of the record, in seconds
                                                   scheduler-key        id of the schedule
                                                   scheduler-topic      topic of the record

As in that scheduler, a schedule whose second had passed when it was recorded is refused, unless its record waited in
the topic for more than a second. A schedule that became due while no worker was running is delivered.
"""

from __future__ import annotations

from typing import ClassVar

from light_scheduler.model import DEFAULT_TENANT, FIRE_BACKLOG, Command, Entry, Headers, Once, ScheduleCommand, Target
from light_scheduler.wire.dialect import Plain
from light_scheduler.wire.record import CommandRecord

from .compatible import KEY, VALUE, CompatibleDialect, Traced
from .reading import (
    SECOND_MS,
    Given,
    cancel,
    id_of,
    is_plain_key,
    key_id,
    key_of,
    last_headers,
    plain_headers,
    plain_seconds,
    plain_topic,
    seconds_header,
    topic_header,
)

EPOCH = "scheduler-epoch"
TARGET_TOPIC = "scheduler-target-topic"
TARGET_KEY = "scheduler-target-key"
SOURCE_TIMESTAMP = "scheduler-timestamp"
SOURCE_KEY = "scheduler-key"
SOURCE_TOPIC = "scheduler-topic"


class Etf1Dialect(CompatibleDialect):
    """Reads schedules from headers that begin with `scheduler-`."""

    name = "etf1"
    names: ClassVar = {"id": KEY, "payload": VALUE, "at": EPOCH, "target-topic": TARGET_TOPIC}

    def plain(self, record: CommandRecord) -> Plain | None:
        headers, sent_at = plain_headers(record), record.timestamp
        if headers is None or record.value is None or sent_at <= 0 or not is_plain_key(record.key):
            return None
        at, topic = plain_seconds(headers.get(EPOCH)), plain_topic(headers.get(TARGET_TOPIC))
        if at is None or topic is None or sent_at - at >= SECOND_MS:
            return None
        given = [*record.headers, (SOURCE_TIMESTAMP, b"%d" % (sent_at // SECOND_MS))]
        return at, Target(topic, headers.get(TARGET_KEY)), record.value, given

    def read(self, record: CommandRecord, headers: Given) -> Command:
        id = key_id(record)
        if record.value is None:
            return cancel(record, id)
        sent_at = b"%d" % (max(record.timestamp, 0) // SECOND_MS)
        return ScheduleCommand(
            DEFAULT_TENANT,
            id,
            record.key,
            Once(seconds_header(headers, EPOCH)),
            Target(topic_header(headers, TARGET_TOPIC), headers.get(TARGET_KEY)),
            record.value,
            [*record.headers, (SOURCE_TIMESTAMP, sent_at)],
            record.partition,
            record.offset,
            record.timestamp,
            on_past=FIRE_BACKLOG,
        )

    def trace(self, entry: Entry, source_topic: bytes) -> Headers:
        return [(SOURCE_KEY, key_of(entry.schedule.id)), (SOURCE_TOPIC, source_topic)]

    def traced(self, key: bytes | None, value: bytes | None, headers: Headers) -> Traced | None:  # noqa: ARG002
        last = last_headers(headers, (SOURCE_KEY, SOURCE_TOPIC))
        if last is None or (id := id_of(last[0])) is None or (topic := plain_topic(last[1])) is None:
            return None
        return Traced(DEFAULT_TENANT, id, topic)


ETF1 = Etf1Dialect()
