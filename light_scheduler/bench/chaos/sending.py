"""Sends the commands of a workload on time, and completions concurrently."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaException, Producer

from light_scheduler.bench.progress import Progress
from light_scheduler.clock import SystemClock
from light_scheduler.errors import BrokerError

from .checker.records import Headers
from .workload import Command, Topics

_SILENT = logging.Logger("light_scheduler.bench.chaos.sending", logging.CRITICAL + 1)
_CONFIGURATION = {
    "partitioner": "murmur2_random",  # Kafka's own
    "enable.idempotence": True,  # preserves the order within a partition over retries
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1_000_000,
    "message.timeout.ms": 300_000,  # longer than every outage
    "message.max.bytes": 2_000_000,
    "reconnect.backoff.max.ms": 500,
    "delivery.report.only.error": True,
}
FLUSH_S = 120.0


class Sender:
    """Sends commands through broker outages. Not thread-safe."""

    def __init__(self, bootstrap_servers: str, commands_topic: str, topics: Topics) -> None:
        self._failures: list[Any] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "on_delivery": lambda error, _message: self._failures.append(error),
                **_CONFIGURATION,
            },
            logger=_SILENT,
        )
        self._topic = commands_topic
        self._answers = ("schedule-reply-topic", topics.answers.encode())
        self._clock = SystemClock()

    def send(self, key: bytes, value: bytes | None, headers: Headers, *, wants_answer: bool = True) -> None:
        """Queue a command."""
        given: list[Any] = [*headers, self._answers] if wants_answer else headers
        while True:
            try:
                self._producer.produce(self._topic, value, key, headers=given)
                break
            except BufferError:
                self._producer.poll(0.05)
        self._producer.poll(0)

    def play(self, commands: Iterable[Command], progress: Progress) -> int:
        """Send each command at its time, or as soon as possible after it. Return the number of commands."""
        begun = time.monotonic()
        count = 0
        for command in commands:
            ahead = command.at - (time.monotonic() - begun)
            if ahead > 0:
                time.sleep(ahead)
            headers = command.headers
            if command.soon is not None:
                due = self._clock.now() + command.soon
                headers = [*headers, ("schedule-at", b"%d" % (due + -due % command.grid_ms))]
            self.send(command.key, command.value, headers, wants_answer=command.wants_answer)
            count += 1
            if not count % 100:
                progress.done(count)
        return count

    def flush(self) -> None:
        """Wait until everything is acknowledged. Raises BrokerError if a command was not."""
        try:
            left = self._producer.flush(FLUSH_S)
        except KafkaException as error:
            raise BrokerError(f"commands could not be sent: {error}") from error
        if left or self._failures:
            cause = self._failures[0] if self._failures else f"no answer within {FLUSH_S:g} s"
            raise BrokerError(f"{left + len(self._failures)} commands were not acknowledged: {cause}")
