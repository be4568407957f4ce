"""The compacted topic of rules that are added and removed while workers run: followed by every worker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, TopicPartition

from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import BrokerError, FormatError
from light_scheduler.kafka.connection import broker_errors, started_producer, stop_consumer, stop_producer
from light_scheduler.model import DelayRule
from light_scheduler.wire.delays import decode_rule, encode_rule

WRITE_TIMEOUT_S = 10.0

log = logging.getLogger(__name__)


class RuleLog:
    """The stored rules, in the order in which they were last written: the same for every worker."""

    def __init__(self, connection: Address, topic: str) -> None:
        self._connection = connection_to(connection)
        self._place = TopicPartition(topic, 0)
        self._rules: dict[str, DelayRule] = {}
        self._reached = 0
        self._moved = asyncio.Event()
        self.is_loaded = False

    @property
    def rules(self) -> list[DelayRule]:
        return list(self._rules.values())

    async def follow(self, changed: Callable[[], None]) -> None:
        """Read for ever; `changed` is called when all that there was is read, and after each change. Raises KafkaError.

        To be called again after an error: it begins anew.
        """
        consumer = AIOKafkaConsumer(
            **self._connection.aiokafka(),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            await consumer.start()
            consumer.assign([self._place])
            await consumer.seek_to_beginning(self._place)
            end = (await consumer.end_offsets([self._place]))[self._place]
            rules: dict[str, DelayRule] = {}
            while True:
                position = await consumer.position(self._place)
                if position >= end and (position > self._reached or not self.is_loaded or rules != self._rules):
                    self._rules, self._reached, self.is_loaded = dict(rules), position, True
                    self._moved.set()
                    changed()
                for record in (await consumer.getmany(timeout_ms=1_000)).get(self._place, ()):
                    _apply(rules, record.key, record.value)
        finally:
            await stop_consumer(consumer)

    async def write(self, name: str, rule: DelayRule | None) -> None:
        """Store a rule, or remove it (None), and wait until it has been read back. Raises BrokerError."""
        key, value = (name.encode(), None) if rule is None else encode_rule(rule)
        with broker_errors(f"writing to {self._place.topic}"):
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                producer = await started_producer(self._connection.aiokafka())
                try:
                    sent = await producer.send_and_wait(self._place.topic, value, key=key, partition=0)
                finally:
                    await stop_producer(producer)
                while self._reached <= sent.offset:
                    self._moved.clear()
                    await self._moved.wait()


async def stored_rules(connection: Address, topic: str, timeout: float) -> list[DelayRule]:
    """Return the rules that are stored now. Raises BrokerError."""
    rule_log = RuleLog(connection, topic)
    loaded = asyncio.Event()
    following = asyncio.create_task(rule_log.follow(loaded.set))
    waiting = asyncio.create_task(loaded.wait())
    try:
        await asyncio.wait([following, waiting], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            with broker_errors(f"reading {topic}"):
                following.result()
        if not loaded.is_set():
            raise BrokerError(f"{topic} could not be read within {timeout:g} s")
    finally:
        for task in (following, waiting):
            task.cancel()
        await asyncio.wait([following, waiting])
    return rule_log.rules


def _apply(rules: dict[str, DelayRule], key: bytes | None, value: bytes | None) -> None:
    try:
        name, rule = decode_rule(key, value)
    except FormatError as error:
        log.warning("passing over a record of the delay rules: %s", error)
        return
    rules.pop(name, None)
    if rule is not None:
        rules[name] = rule
