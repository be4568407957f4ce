"""A record for later: key, value, topic and when, as a request for this client or a record for any producer."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from light_scheduler.clock import SystemClock
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Headers, TopicNames
from light_scheduler.wire import partition_for

from .commands import new_id, schedule_command
from .options import Key, ScheduleRequest, UserHeaders, When

_CALENDAR_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Record(NamedTuple):
    """A command as a record for a producer of your own. `tenant` and `id` name the schedule that it makes.

    `partition` is None unless the number of partitions was given: then the producer chooses by the key.
    """

    tenant: str
    id: str
    topic: str
    key: bytes
    value: bytes | None
    headers: Headers
    partition: int | None = None

    def aiokafka(self) -> dict[str, Any]:
        """Return the arguments of `AIOKafkaProducer.send`."""
        return {
            "topic": self.topic,
            "value": self.value,
            "key": self.key,
            "partition": self.partition,
            "headers": self.headers,
        }

    def confluent(self) -> dict[str, Any]:
        """Return the arguments of `confluent_kafka.Producer.produce`."""
        arguments = self.aiokafka()
        return arguments if self.partition is not None else {**arguments, "partition": -1}

    def kafka_python(self) -> dict[str, Any]:
        """Return the arguments of `KafkaProducer.send`. Raises InvalidCommand if a header is null: it takes none."""
        for name, value in self.headers:
            if value is None:
                what = "the key is None" if name == "schedule-target-key" else f"header {name} is None"
                raise InvalidCommand(name, f"{what}, and kafka-python sends no null header: use another producer")
        return self.aiokafka()


def later_request(
    key: Key | None, value: bytes | None, topic: str, when: When, headers: UserHeaders | None, id: str
) -> ScheduleRequest:
    """Return the request of a record for later. Raises InvalidCommand for a time that is none.

    A record without a key has the schedule's id as its entity key.
    """
    request: ScheduleRequest = {"id": id, "payload": value, "topic": topic, "headers": headers}
    if key is None:
        request["target_key"] = None
    else:
        request["key"] = key
    if _is_delay(when):
        request["after"] = when  # type: ignore[typeddict-item]
    else:
        request["at"] = when  # type: ignore[typeddict-item]
    return request


def record_for(
    key: Key | None,
    value: bytes | None,
    topic: str,
    when: When,
    *,
    headers: UserHeaders | None = None,
    id: str | None = None,
    tenant: str = DEFAULT_TENANT,
    app_id: str = "light-scheduler",
    commands_topic: str | None = None,
    partitions: int | None = None,
) -> Record:
    """Make the command record that `send_later` would send, for a producer of your own, such as a transactional one.

    The default of `id` is a new time-ordered id. With `partitions`, the number of partitions of the commands topic, the
    record has the partition of its key; else the producer chooses it. Raises InvalidCommand.
    """
    request = later_request(key, value, topic, when, headers, id or new_id(SystemClock()))
    command = schedule_command(tenant, request)
    return Record(
        command.tenant,
        command.id,
        commands_topic or TopicNames(app_id).commands,
        command.key,
        command.value,
        command.headers,
        None if partitions is None else partition_for(command.key, partitions),
    )


def _is_delay(when: When) -> bool:
    if isinstance(when, bool) or not isinstance(when, datetime | timedelta | int | str):
        raise InvalidCommand(
            "when", f"must be a datetime, a timedelta, UTC epoch ms or text such as 15m, not {type(when).__name__}"
        )
    if not isinstance(when, str):
        return isinstance(when, timedelta)
    if when.strip().isdigit():
        raise InvalidCommand("when", f"{when!r} has no unit: write 90s or 15m, or give UTC epoch ms as an int")
    return _CALENDAR_DATE.match(when) is None
