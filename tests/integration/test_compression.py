"""Producers compress as they like: Java's often with lz4, snappy or zstd."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from support.application import Application
from support.reading import header, read_until

pytestmark = pytest.mark.integration

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


async def test_commands_are_read_whatever_they_are_compressed_with(application: Application) -> None:
    await application.start_worker()
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": application.bootstrap_servers, "compression.type": codec})
        headers: list[tuple[str, str | bytes | None]] = [("schedule-target-topic", application.target)]
        payload = codec.encode() * 100  # what does not get smaller is not compressed
        producer.produce(application.settings.topics.commands, payload, codec, headers=headers)
        assert producer.flush(60) == 0
    fired = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= len(CODECS)
    )
    assert {record.key: record.value for record in fired} == {codec.encode(): codec.encode() * 100 for codec in CODECS}


async def test_a_batch_of_zeros_costs_no_memory_and_stops_nobody(application: Application) -> None:
    worker = await application.start_worker()
    commands, target = application.settings.topics.commands, application.target
    zeros = bytes(300 << 20)
    producer = Producer(
        {
            "bootstrap.servers": application.bootstrap_servers,
            "compression.type": "zstd",
            "message.max.bytes": 1_000_000_000,
        }
    )
    for id, value in (("before", b"1"), ("zeros", zeros), ("after", b"2")):
        headers: list[tuple[str, str | bytes | None]] = [("schedule-id", id), ("schedule-target-topic", target)]
        producer.produce(commands, value, "entity", headers=headers, partition=0)  # of one key, so in order
        assert producer.flush(60) == 0
    del zeros

    fired = await read_until(application.bootstrap_servers, [target], lambda records: len(records) >= 2)
    assert [record.value for record in fired] == [b"1", b"2"]
    (letter,) = await read_until(
        application.bootstrap_servers, [application.settings.topics.dead_letters], lambda records: len(records) >= 1
    )
    assert (header(letter, "schedule-unreadable") or "").startswith("offsets 1 to 1: a compressed batch of ")
    assert peak_kib(worker.pid) < 600_000


def peak_kib(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])
