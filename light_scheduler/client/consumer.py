"""FiringConsumer: calls a function for each message that the scheduler has delivered, with aiokafka."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from light_scheduler.connection import KafkaSecurity
from light_scheduler.connection.security import PLAINTEXT
from light_scheduler.errors import ClientError, FormatError, InvalidCommand
from light_scheduler.kafka.connection import broker_errors, connection_of, stop_consumer

from .firings import parse_firing
from .handling import GiveUp, Handler, HandlingRules, handle
from .options import Span
from .scheduler_client import SchedulerClient

MOST_RECORDS = 500
POLL_MS = 200

log = logging.getLogger(__name__)


class FiringConsumer:
    """Consumes topics as a member of a group, and calls the function that was given for each.

        consumer = FiringConsumer(scheduler, "127.0.0.1:9092", group_id="billing")

        @consumer.on_firing("reminders", attempts=10)
        async def remind(firing: Firing) -> None:
            ...

        await consumer.run()

    Messages of one partition are processed one after the other, partitions at the same time. A message counts as
    consumed when its function has returned, or its next delivery is scheduled. A consumer that is killed before that
    processes it again: deduplicate by `firing.delivery_id`.
    """

    def __init__(
        self,
        client: SchedulerClient,
        bootstrap_servers: str = "127.0.0.1:9092",
        *,
        group_id: str,
        security: KafkaSecurity = PLAINTEXT,
        kafka_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a consumer. `client` has to be open while it runs. `kafka_options` are aiokafka's."""
        self._client = client
        self._options = {
            **connection_of(bootstrap_servers, security).aiokafka(),
            "auto_offset_reset": "earliest",
            **(kafka_options or {}),
            "group_id": group_id,
            "isolation_level": "read_committed",
            "enable_auto_commit": False,
        }
        self._handlers: dict[str, tuple[Handler, HandlingRules]] = {}
        self._stopping = asyncio.Event()

    def on_firing(
        self,
        topic: str,
        *,
        completes: bool = False,
        initial: Span = "5s",
        factor: float = 2.0,
        longest: Span = "1h",
        attempts: int = 50,
        give_up: GiveUp | None = None,
        heartbeat: Span | None = None,
    ) -> Callable[[Handler], Handler]:
        """Register a function for the messages of a topic; see `HandlingRules` for the arguments.

        Raises InvalidCommand if the topic has a function already, or for a heartbeat without `completes`.
        """
        if topic in self._handlers:
            raise InvalidCommand("topic", f"{topic} has a function already")
        rules = HandlingRules(completes, initial, factor, longest, attempts, give_up, heartbeat)

        def register(handler: Handler) -> Handler:
            self._handlers[topic] = handler, rules
            return handler

        return register

    def stop(self) -> None:
        """Have `run` return after the messages that are being processed."""
        self._stopping.set()

    async def run(self) -> None:
        """Consume until `stop`.

        Raises ClientError without a function, BrokerError, and the error of a message that was given up.
        """
        if not self._handlers:
            raise ClientError("the consumer has no function: register one with @consumer.on_firing(TOPIC)")
        consumer = AIOKafkaConsumer(*self._handlers, **self._options)
        try:
            with broker_errors(self._consuming):
                await consumer.start()
            while not self._stopping.is_set():
                await self._consume(consumer)
        finally:
            await stop_consumer(consumer)

    async def _consume(self, consumer: AIOKafkaConsumer) -> None:
        """Process what has been fetched, a partition beside the other, and commit how far each has come."""
        with broker_errors(self._consuming):
            fetched = await consumer.getmany(timeout_ms=POLL_MS, max_records=MOST_RECORDS)
        done: dict[TopicPartition, int] = {}
        try:
            async with asyncio.TaskGroup() as partitions:
                for place, records in fetched.items():
                    partitions.create_task(self._process(place, records, done))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            if done:
                # After a rebalance another member has the partition, and processes these again.
                with (
                    broker_errors(
                        f"cannot commit what was consumed from {', '.join(sorted({place.topic for place in done}))}"
                    ),
                    suppress(CommitFailedError, IllegalStateError),
                ):
                    await consumer.commit(done)

    @property
    def _consuming(self) -> str:
        return f"cannot consume {', '.join(sorted(self._handlers))}"

    async def _process(self, place: TopicPartition, records: list[Any], done: dict[TopicPartition, int]) -> None:
        handler, rules = self._handlers[place.topic]
        for record in records:
            if self._stopping.is_set():
                return
            try:
                firing = parse_firing(record)
            except FormatError as error:
                log.warning("%s-%d at offset %d is passed over: %s", place.topic, place.partition, record.offset, error)
            else:
                await handle(self._client, firing, place.topic, rules, handler)
            done[place] = record.offset + 1
