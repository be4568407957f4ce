"""Command records that could stop their partition: each is rejected, and the next command is answered soon."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.structs import ConsumerRecord, RecordMetadata
from support.application import Application
from support.reading import header, read_until

from light_scheduler.model import EventType, Headers, Outcome
from light_scheduler.wire import decode_history, decode_result, partition_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

ANSWER_S = 10.0
INTERNAL = ("__consumer_offsets", "__transaction_state")
CANCEL_ALL: Headers = [("schedule-command", b"cancel"), ("schedule-id", b"*")]
SIZES = (950_000, 1_048_300)
"""More than a lane puts into one of its batches; nearly all that a commands topic takes."""


def labels(size: int) -> bytes:
    return b",".join(b"k%05d=v" % number for number in range(size // 9))


def to_target(topic: str) -> Headers:
    return [("schedule-target-topic", topic.encode())]


def answer_to(topic: str) -> Headers:
    return [("schedule-reply-topic", topic.encode())]


HOSTILE: dict[str, tuple[bytes, bytes | None, Headers]] = {
    **{f"answer to {topic}": (b"a", b"x", [*to_target("anything"), *answer_to(topic)]) for topic in INTERNAL},
    **{f"answer of a cancel to {topic}": (b"a", None, answer_to(topic)) for topic in INTERNAL},
    **{f"firing to {topic}": (b"a", b"x", to_target(topic)) for topic in INTERNAL},
    **{
        f"many, with labels of {size}": (b"a", b"", [*CANCEL_ALL, ("schedule-labels", labels(size - 100))])
        for size in SIZES
    },
    "many, with a label of 950000": (b"a", b"", [*CANCEL_ALL, ("schedule-labels", b"a=" + b"x" * 950_000)]),
    "a count that nobody waits for": (b"a", b"", [("schedule-bulk-count", b"1:0:3")]),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_record_that_could_stop_its_partition_is_rejected_and_the_next_command_is_answered(
    served: Application, name: str
) -> None:
    sent = await send_both(served, *HOSTILE[name])

    names, servers = served.settings.topics, served.bootstrap_servers
    letters = await read_until(servers, [names.dead_letters], lambda records: len(records) >= 1, timeout=ANSWER_S)
    assert [
        [header(letter, f"dead-letter-{field}") for field in ("cause", "source-partition", "source-offset")]
        for letter in letters
    ] == [["rejected", "0", str(sent.offset)]]
    assert await told_of(served, EventType.REJECTED) == 1
    info = await served.workers[0].get("/info")
    assert all(lane["state"] == "running" for lane in info["lanes"])


@pytest.mark.parametrize("size", SIZES)
async def test_a_command_for_many_with_a_large_key_is_carried_out_in_all_partitions(
    served: Application, size: int
) -> None:
    await send_both(served, b"k" * size, b"", CANCEL_ALL)
    assert await told_of(served, EventType.CANCELLED) == 1, "which is said when each partition has reported"
    info = await served.workers[0].get("/info")
    assert all(lane["state"] == "running" for lane in info["lanes"])
    assert not any(lane["outcomes"].get("rejected") for lane in info["lanes"])


async def told_of(served: Application, event: EventType) -> int:
    """Wait until history has an event; return how often."""

    def is_it(record: ConsumerRecord) -> bool:
        return decode_history(record.value).event is event

    servers, history = served.bootstrap_servers, served.settings.topics.history
    told = await read_until(servers, [history], lambda records: any(map(is_it, records)), timeout=ANSWER_S)
    return sum(map(is_it, told))


async def send_both(served: Application, key: bytes, value: bytes | None, headers: Headers) -> RecordMetadata:
    """Send a record and a good command after it; return where the first one is when the other has been carried out."""
    names, servers = served.settings.topics, served.bootstrap_servers
    sane = next(key for n in range(999) if partition_for(key := b"sane-%d" % n, served.settings.partitions) == 0)
    good: Headers = [
        *to_target(served.target),
        *answer_to(names.results),
        ("schedule-correlation-id", sane),
        ("schedule-after", b"200"),
    ]
    async with AIOKafkaProducer(bootstrap_servers=servers, max_request_size=2_000_000) as producer:

        async def send(key: bytes, value: bytes | None, headers: Headers) -> RecordMetadata:
            return await producer.send_and_wait(names.commands, value, key, partition=0, headers=headers)

        sent = await send(key, value, headers)
        await send(sane, b"x", good)

    answered = await read_until(
        servers,
        [names.results],
        lambda records: any(header(record, "schedule-correlation-id") == sane.decode() for record in records),
        timeout=ANSWER_S,
    )
    assert [decode_result(record.value).outcome for record in answered] == [Outcome.SCHEDULED]
    await read_until(servers, [served.target], lambda records: len(records) == 1, timeout=ANSWER_S)
    return sent
