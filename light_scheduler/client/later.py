"""Makes commands as records for any producer; for example, to deliver a record later."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Unpack

from light_scheduler.clock import SystemClock
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Headers, TopicNames
from light_scheduler.wire import partition_for

from .argument_names import argument_errors
from .commands import CommandToSend, control_command, new_id, schedule_command
from .options import Id, Key, Payload, ScheduleOptions, ScheduleRequest, UserHeaders, When
from .serializers import Serializer, payload_of

_CALENDAR_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Record(NamedTuple):
    """A command as a record for your own producer. `tenant` and `id` name its schedule.

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
        """Return the arguments of `KafkaProducer.send`. Raises InvalidCommand for a null header, which it does not
        support."""
        for name, value in self.headers:
            if value is None:
                what = "the key is None" if name == "schedule-target-key" else f"header {name} is None"
                raise InvalidCommand(name, f"{what}, and kafka-python sends no null header: use another producer")
        return self.aiokafka()


def later_request(
    key: Key | None, value: bytes | None, topic: str, when: When, headers: UserHeaders | None, id: str
) -> ScheduleRequest:
    """Return the request to send a record later. Raises InvalidCommand for an invalid time.

    The entity key of a record without a key is the schedule's id.
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


@dataclass(frozen=True)
class CommandRecords:
    """Makes the command records that a client would send, for your own producer, such as a transactional one.

        records = CommandRecords(app_id="shop", partitions=12)
        record = records.schedule("order-1", b"pay!", topic="reminders", cron="0 9 * * 1-5")
        await producer.send(**record.aiokafka())

    `commands_topic` must have the dialect native; default: `{app_id}-commands`. With `partitions`, its number of
    partitions, a record has the partition of its key; otherwise your producer chooses it. With a `serializer`, payloads
    can be values that it accepts. All methods raise InvalidCommand naming the invalid argument.
    """

    app_id: str = "light-scheduler"
    tenant: str = DEFAULT_TENANT
    commands_topic: str | None = None
    partitions: int | None = None
    serializer: Serializer | None = None

    def schedule(self, id: Id = None, payload: Payload = b"", **options: Unpack[ScheduleOptions]) -> Record:
        """Return the record of `SchedulerClient.schedule`. Without id and key, the id is a new time-ordered one."""
        request: ScheduleRequest = {**options, "id": id, "payload": payload_of(self.serializer, payload)}
        with argument_errors():
            return self._record(schedule_command(self.tenant, request, generated_id=new_id(SystemClock())))

    def cancel(self, id: str, *, key: Key | None = None, expected_version: int | None = None) -> Record:
        """Return the record of `SchedulerClient.cancel`; `key` is that of the schedule, by default its id."""
        with argument_errors():
            return self._record(control_command("cancel", self.tenant, id, key=key, expected_version=expected_version))

    def send_later(
        self,
        key: Key | None,
        value: Payload,
        topic: str,
        when: When,
        *,
        headers: UserHeaders | None = None,
        id: str | None = None,
    ) -> Record:
        """Return the record of `SchedulerClient.send_later`. `id` defaults to a new time-ordered one."""
        payload = payload_of(self.serializer, value)
        request = later_request(key, payload, topic, when, headers, id or new_id(SystemClock()))
        with argument_errors({"at": "when", "after": "when"}):
            return self._record(schedule_command(self.tenant, request))

    def _record(self, command: CommandToSend) -> Record:
        topic = self.commands_topic or TopicNames(self.app_id).commands
        partition = None if self.partitions is None else partition_for(command.key, self.partitions)
        return Record(command.tenant, command.id, topic, command.key, command.value, command.headers, partition)


def record_for(
    key: Key | None,
    value: bytes | None,
    topic: str,
    when: When,
    *,
    headers: UserHeaders | None = None,
    id: str | None = None,
    records: CommandRecords | None = None,
) -> Record:
    """Make the record of `send_later` for your own producer. `records` sets the application and the tenant.

    Raises InvalidCommand.
    """
    return (records or CommandRecords()).send_later(key, value, topic, when, headers=headers, id=id)


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
