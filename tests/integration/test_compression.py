"""Producers compress as they like: Java's often with lz4, snappy or zstd."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from support.application import Application
from support.reading import read_until

pytestmark = pytest.mark.integration

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


async def test_commands_are_read_whatever_they_are_compressed_with(application: Application) -> None:
    await application.start_worker()
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": application.bootstrap_servers, "compression.type": codec})
        headers: list[tuple[str, str | bytes | None]] = [("schedule-target-topic", application.target)]
        payload = codec.encode() * 100  # what does not get smaller is not compressed
        producer.produce(application.settings.topics.commands, payload, codec, headers=headers)
        assert producer.flush(15) == 0
    fired = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= len(CODECS)
    )
    assert {record.key: record.value for record in fired} == {codec.encode(): codec.encode() * 100 for codec in CODECS}
