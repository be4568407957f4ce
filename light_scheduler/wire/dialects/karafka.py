"""The dialect of Karafka's Scheduled Messages.

    record                                              message
    key                            id, in its partition schedule_target_key, or null
    value                          payload              payload
    schedule_schema_version        1.0.0                as given, like all headers
    schedule_source_type           schedule, cancel or tombstone
    schedule_target_epoch          due, in seconds
    schedule_target_topic          target topic
    schedule_target_key            the message's key
    schedule_target_partition      its partition
    schedule_target_partition_key  key that chooses the partition instead of the message's key
                                                        schedule_source_topic, schedule_source_partition,
                                                        schedule_source_offset, schedule_source_key

`cancel` and `tombstone` (already dispatched) both end a schedule, and only need version and type. A target epoch more
than 10 s in the past or more than 100 years ahead is refused. So is a version that is newer than the known one.
"""

from __future__ import annotations

import re
from typing import ClassVar

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Command, Entry, Headers, Once, ScheduleCommand, Target
from light_scheduler.wire.dialect import Plain
from light_scheduler.wire.durations import shown
from light_scheduler.wire.fields import RULES, closest
from light_scheduler.wire.record import CommandRecord

from .compatible import KEY, VALUE, CompatibleDialect, Traced
from .reading import (
    Given,
    cancel,
    first_headers,
    id_of,
    is_plain_key,
    key_id,
    key_of,
    last_headers,
    plain_headers,
    plain_seconds,
    plain_topic,
    seconds_header,
    text_header,
    topic_header,
)

SCHEMA_VERSION = "schedule_schema_version"
SOURCE_TYPE = "schedule_source_type"
TARGET_EPOCH = "schedule_target_epoch"
TARGET_TOPIC = "schedule_target_topic"
TARGET_KEY = "schedule_target_key"
TARGET_PARTITION = "schedule_target_partition"
TARGET_PARTITION_KEY = "schedule_target_partition_key"
SOURCE_TOPIC = "schedule_source_topic"
SOURCE_PARTITION = "schedule_source_partition"
SOURCE_OFFSET = "schedule_source_offset"
SOURCE_KEY = "schedule_source_key"

KNOWN_VERSION = (1, 0, 0)
GRACE_MS = 10_000
FURTHEST_MS = 36_525 * 86_400_000
"""How far a target epoch may be in the past when its record is written, and in the future: 100 years with leap days."""

_SCHEDULE = b"schedule"
_TYPES = ("schedule", "cancel", "tombstone")
_ONE_OF_THEM = f"one of {', '.join(_TYPES)}"
_NUMBER = re.compile(rb"\d{1,9}")
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", re.ASCII)


class KarafkaDialect(CompatibleDialect):
    """Reads schedules from headers that begin with `schedule_`. `known` is the newest supported schema version."""

    name = "karafka"
    names: ClassVar = {"id": KEY, "payload": VALUE, "at": TARGET_EPOCH, "target-topic": TARGET_TOPIC}

    def __init__(self, known: tuple[int, int, int] = KNOWN_VERSION) -> None:
        self._known = known
        self._newest = b"%d.%d.%d" % known

    def plain(self, record: CommandRecord) -> Plain | None:
        headers, sent_at = plain_headers(record), record.timestamp
        if headers is None or headers.get(SCHEMA_VERSION) != self._newest or headers.get(SOURCE_TYPE) != _SCHEDULE:
            return None
        at, topic = plain_seconds(headers.get(TARGET_EPOCH)), plain_topic(headers.get(TARGET_TOPIC))
        if at is None or topic is None or sent_at <= 0 or not -GRACE_MS <= at - sent_at <= FURTHEST_MS:
            return None
        if TARGET_PARTITION in headers or not is_plain_key(record.key):
            return None
        target = Target(topic, headers.get(TARGET_KEY), None, headers.get(TARGET_PARTITION_KEY))
        return at, target, record.value, list(record.headers)

    def read(self, record: CommandRecord, headers: Given) -> Command:
        if headers.get(SCHEMA_VERSION) != self._newest:
            self._check_version(text_header(headers, SCHEMA_VERSION, "the version of the headers, 1.0.0"))
        kind = text_header(headers, SOURCE_TYPE, _ONE_OF_THEM)
        if kind not in _TYPES:
            raise InvalidCommand(
                SOURCE_TYPE, f"{shown(kind)} must be one of {', '.join(_TYPES)}{closest(kind, _TYPES)}"
            )
        id = key_id(record)
        if kind != "schedule":
            return cancel(record, id)
        at = seconds_header(headers, TARGET_EPOCH)
        if record.timestamp > 0 and at - record.timestamp > FURTHEST_MS:
            raise InvalidCommand(TARGET_EPOCH, f"{at // 1_000} is more than 100 years ahead: use seconds since 1970")
        return ScheduleCommand(
            DEFAULT_TENANT,
            id,
            record.key,
            Once(at),
            Target(
                topic_header(headers, TARGET_TOPIC),
                headers.get(TARGET_KEY),
                _partition(headers),
                headers.get(TARGET_PARTITION_KEY),
            ),
            record.value,
            list(record.headers),
            record.partition,
            record.offset,
            record.timestamp,
            on_past=GRACE_MS,
        )

    def cancels(self, record: CommandRecord) -> bool:
        return first_headers(record).get(SOURCE_TYPE) in (b"cancel", b"tombstone")

    def trace(self, entry: Entry, source_topic: bytes) -> Headers:
        schedule = entry.schedule
        return [
            (SOURCE_TOPIC, source_topic),
            (SOURCE_PARTITION, b"%d" % schedule.source_partition),
            (SOURCE_OFFSET, b"%d" % schedule.source_offset),
            (SOURCE_KEY, key_of(schedule.id)),
        ]

    def traced(self, key: bytes | None, value: bytes | None, headers: Headers) -> Traced | None:  # noqa: ARG002
        last = last_headers(headers, (SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET, SOURCE_KEY))
        if last is None or (id := id_of(last[-1])) is None or not _NUMBER.fullmatch(last[1]):
            return None
        topic = plain_topic(last[0])
        return None if topic is None else Traced(DEFAULT_TENANT, id, topic, int(last[1]))

    def _check_version(self, text: str) -> None:
        match = _VERSION.fullmatch(text)
        if match is None:
            raise InvalidCommand(SCHEMA_VERSION, f"{shown(text)} is not a version, such as 1.0.0")
        if tuple(map(int, match.groups())) > self._known:  # 1.10 is newer than 1.2
            known = ".".join(map(str, self._known))
            raise InvalidCommand(SCHEMA_VERSION, f"{text} is newer than {known}, which this scheduler reads")


def _partition(headers: Given) -> int | None:
    given = headers.get(TARGET_PARTITION)
    if given is None:
        return None
    try:
        partition: int = RULES["target-partition"].parse(given.decode())
    except UnicodeDecodeError:
        raise InvalidCommand(TARGET_PARTITION, "is not UTF-8 text") from None
    except ValueError as error:
        raise InvalidCommand(TARGET_PARTITION, str(error)) from None
    return partition


KARAFKA = KarafkaDialect()
