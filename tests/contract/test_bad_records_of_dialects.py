"""Bad records of other schedulers' producers: each is a dead letter that names its field, and the rest goes on."""

from __future__ import annotations

from typing import Any

import pytest
from support.foreign import (
    FOREIGN,
    SKYUK_SCHEMA,
    avro,
    etf1_headers,
    karafka_headers,
    record,
    skyuk_avro,
    skyuk_json,
    task,
    task_key,
)
from support.partition import AT, NAMES, Partition
from support.producing import FakeProducer

from light_scheduler.model import Outcome
from light_scheduler.wire import dialect_named
from light_scheduler.wire.durations import LONGEST_DURATION
from light_scheduler.wire.schemas import Schemas

from .test_compatible_dialects import DAY, DUE, messages

# -- what is wrong ----------------------------------------------------------------------------------------------------


def etf1(key: bytes | None = b"a", **headers: str | None) -> Any:
    given = dict(etf1_headers(DUE)) | {f"scheduler-{name.replace('_', '-')}": text for name, text in headers.items()}
    return record(key, b"x", [(name, _bytes(value)) for name, value in given.items() if value is not None])


def karafka(key: bytes | None = b"a", **headers: str | None) -> Any:
    given = dict(karafka_headers(DUE)) | {f"schedule_{name}": text for name, text in headers.items()}
    return record(key, b"x", [(name, _bytes(value)) for name, value in given.items() if value is not None])


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


HUNDRED_YEARS = str((AT + 101 * 366 * DAY) // 1_000)
WRONG: list[tuple[str, Any, str, str]] = [
    ("etf1", etf1(key=None), "key", "must not be empty"),
    ("etf1", etf1(key=b" "), "key", "must not be empty"),
    ("etf1", etf1(key=b"k" * 600), "key", "longer than 512 bytes"),
    ("etf1", etf1(epoch=None), "scheduler-epoch", "is required"),
    ("etf1", etf1(epoch="soon"), "scheduler-epoch", "'soon' is not a number of whole seconds"),
    ("etf1", etf1(epoch="-1"), "scheduler-epoch", "not a number of whole seconds"),
    ("etf1", etf1(epoch=str(DUE)), "scheduler-epoch", "not milliseconds"),
    ("etf1", etf1(epoch="9" * 30), "scheduler-epoch", "not a number of whole seconds"),
    ("etf1", etf1(target_topic=None), "scheduler-target-topic", "is required"),
    ("etf1", etf1(target_topic="a b"), "scheduler-target-topic", "is not a topic name"),
    ("etf1", etf1(target_topic=NAMES.history), "scheduler-target-topic", "internal topic"),
    ("etf1", record(b"a", b"x" * 1_000_001, etf1_headers(DUE)), "value", "at most 1000000"),
    ("karafka", karafka(key=b""), "key", "must not be empty"),
    ("karafka", karafka(schema_version=None), "schedule_schema_version", "is required"),
    ("karafka", karafka(schema_version="one"), "schedule_schema_version", "is not a version"),
    ("karafka", karafka(schema_version="1.1.0"), "schedule_schema_version", "newer than 1.0.0"),
    ("karafka", karafka(source_type=None), "schedule_source_type", "is required"),
    ("karafka", karafka(source_type="cancle"), "schedule_source_type", "did you mean cancel"),
    ("karafka", karafka(target_epoch=None), "schedule_target_epoch", "is required"),
    ("karafka", karafka(target_epoch="1.5"), "schedule_target_epoch", "whole seconds"),
    ("karafka", karafka(target_epoch=HUNDRED_YEARS), "schedule_target_epoch", "100 years"),
    ("karafka", karafka(target_topic=""), "schedule_target_topic", "is required"),
    ("karafka", karafka(target_partition="x"), "schedule_target_partition", "whole number"),
    ("karafka", karafka(target_partition=""), "schedule_target_partition", "'' is not a whole number"),
    ("skyuk", record(None, skyuk_json(DUE), []), "record key", "must not be empty"),
    ("skyuk", record(b"a", b"{", []), "record value", "is not JSON"),
    ("skyuk", record(b"a", b"", []), "record value", "is not Avro of the schema"),
    ("skyuk", record(b"a", skyuk_avro(DUE) + b"x", []), "record value", "is not Avro of the schema"),
    ("skyuk", record(b"a", skyuk_json(None), []), "time", "is required"),
    ("skyuk", record(b"a", skyuk_json(True), []), "time", "is True; it must be a whole number of ms"),
    ("skyuk", record(b"a", skyuk_json(DUE + 0.5), []), "time", f"is {DUE}.5; it must be a whole number of ms"),
    ("skyuk", record(b"a", skyuk_json("tomorrow"), []), "time", "is not an instant"),
    ("skyuk", record(b"a", skyuk_json(DUE * 1_000), []), "time", "beyond the year 9999"),
    ("skyuk", record(b"a", skyuk_json(DUE, topic=""), []), "topic", "is not a topic name"),
    ("skyuk", record(b"a", skyuk_json(DUE, topic=1), []), "topic", "must be text"),
    ("skyuk", record(b"a", skyuk_json(DUE, key="###"), []), "key", "is not base64"),
    ("skyuk", record(b"a", skyuk_json(DUE, key=None), []), "key", "must be base64 text"),
    ("skyuk", record(b"a", skyuk_json(DUE, value=5), []), "value", "must be base64 text"),
    ("skyuk", record(b"a", skyuk_json(DUE, headers={"h": 1}), []), "headers.h", "must be base64 text"),
    ("light4j", record(task_key(), b"\x00", []), "record value", "is not Avro of the schema"),
    ("light4j", record(b"\xff", None, []), "record key", "is not Avro of the schema"),
    ("light4j", record(None, None, []), "record key", "is required"),
    ("light4j", record(task_key(host="a b"), task(DUE), []), "host", "not a tenant name"),
    ("light4j", record(task_key(name=""), task(DUE), []), "name", "must not be empty"),
    ("light4j", record(task_key(), task(DUE, frequency=None), []), "frequency", "is required"),
    (
        "light4j",
        record(task_key(), task(DUE, frequency={"timeUnit": "DAYS", "time": 0}), []),
        "frequency.time",
        "least 1",
    ),
    (
        "light4j",
        record(task_key(), task(DUE, frequency={"timeUnit": "DAYS", "time": 2**31 - 1}), []),
        "frequency.time",
        f"2147483647 must be a whole number of units, at least 1 and at most {LONGEST_DURATION // DAY}",
    ),
    ("light4j", record(task_key(), task(DUE, start=-1), []), "start", "UTC epoch ms"),
    ("light4j", record(task_key(), task(DUE, topic="a b"), []), "topic", "is not a topic name"),
]


@pytest.mark.parametrize(("dialect", "bad", "field", "reason"), WRONG)
async def test_a_bad_record_is_a_dead_letter_that_names_its_field_and_the_rest_goes_on(
    dialect: str, bad: Any, field: str, reason: str, producer: FakeProducer
) -> None:
    foreign = next(each for each in FOREIGN.values() if each.dialect == dialect)
    partition = Partition(producer, dialect=dialect)
    good = foreign.schedule(DUE, b"payload", 43, AT)
    cycle = await partition.run(bad, good)
    assert cycle.outcomes == {Outcome.REJECTED: 1, Outcome.SCHEDULED: 1}
    (letter,) = partition.dead_letters
    assert letter.field == field
    assert reason in letter.reason
    assert (letter.key, letter.value, letter.headers) == (bad.key, bad.value, list(bad.headers))
    await partition.run(now=DUE)
    assert messages(partition) == [foreign.expected(DUE, b"payload", good)]


@pytest.mark.parametrize("type", ["float", "double"])
async def test_a_time_of_skyuk_in_a_type_that_cannot_hold_every_instant_is_refused(
    type: str, producer: FakeProducer
) -> None:
    fields = [{"name": "time", "type": type}, *SKYUK_SCHEMA["fields"][1:]]
    schemas, schema = Schemas(), {**SKYUK_SCHEMA, "fields": fields}
    schemas.note(1, schema)
    partition = Partition(producer, dialect="skyuk", schemas=schemas)
    document = {"time": float(DUE), "topic": "reminders", "key": b"k", "value": b"v", "headers": {}}
    bad, good = record(b"a", avro(schema, document, 1), []), FOREIGN["skyuk, Avro"].schedule(DUE, b"payload", 43, AT)
    cycle = await partition.run(bad, good)
    assert cycle.outcomes == {Outcome.REJECTED: 1, Outcome.SCHEDULED: 1}
    (letter,) = partition.dead_letters
    assert (letter.field, "must be a whole number of ms" in letter.reason) == ("time", True)
    assert (letter.key, letter.value) == (bad.key, bad.value)


@pytest.mark.parametrize("length", [1, 62, 63, 64, 65, 200])
def test_a_task_is_named_by_its_key_however_long_its_names_are(length: int) -> None:
    dialect = dialect_named("light4j")
    for host, name in (("h", "n" * length), ("h" * min(length, 64), "é" * (length // 2 or 1))):
        key = task_key(name, host)
        for value in (task(DUE, host=host, name=name), task(DUE, host="other", name="others")):
            command = dialect.decode(record(key, value, []))
            assert (command.tenant, command.id) == (host, name)
