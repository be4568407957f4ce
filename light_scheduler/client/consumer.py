"""FiringConsumer: calls a function for each message that the scheduler delivers, with aiokafka."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from light_scheduler.connection import KafkaSecurity
from light_scheduler.connection.security import PLAINTEXT
from light_scheduler.errors import ClientError, FormatError, InvalidCommand
from light_scheduler.kafka.connection import broker_errors, connection_of, option_errors, stop_consumer
from light_scheduler.kafka.lasting_logins import keep_logged_in

from .firings import parse_firing
from .handling import GiveUp, Handler, HandlingRules, handle
from .kafka_options import check_member_options
from .options import Span
from .partitions import Partitions
from .scheduler_client import SchedulerClient

log = logging.getLogger(__name__)


class FiringConsumer:
    """Consumes topics as a member of a group, and calls the function registered for each.

        consumer = FiringConsumer(scheduler, "127.0.0.1:9092", group_id="billing")

        @consumer.on_firing("reminders", attempts=10)
        async def remind(firing: Firing) -> None:
            ...

        await consumer.run()

    Messages of one partition are processed one after the other, different partitions concurrently. A message counts as
    consumed when its function has returned, or its next delivery is scheduled. A message is processed again if its
    consumer is killed before that, or if a rebalance comes while its function runs for more than 10 s. So deduplicate
    by `firing.delivery_id`.
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
        """Create a consumer. `client` has to be open while it runs. `kafka_options` are those of aiokafka's consumer.

        Raises InvalidCommand for an option that it does not have, or that is set otherwise, as `group_id` is.
        """
        check_member_options(kafka_options or {})
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

        Raises InvalidCommand if the topic already has a function, or for a heartbeat without `completes`.
        """
        if topic in self._handlers:
            raise InvalidCommand("topic", f"{topic} already has a function")
        rules = HandlingRules(completes, initial, factor, longest, attempts, give_up, heartbeat)

        def register(handler: Handler) -> Handler:
            self._handlers[topic] = handler, rules
            return handler

        return register

    def stop(self) -> None:
        """Make `run` return after the messages in progress."""
        self._stopping.set()

    async def run(self) -> None:
        """Consume until `stop`.

        Raises ClientError without a function, InvalidCommand if aiokafka refuses an option, BrokerError, and the error
        of a message that was given up.
        """
        if not self._handlers:
            raise ClientError("the consumer has no function: register one with @consumer.on_firing(TOPIC)")
        with option_errors():
            consumer = AIOKafkaConsumer(**self._options)
        keep_logged_in(consumer._client)
        partitions = Partitions(consumer, self._process)
        try:
            with broker_errors(f"cannot consume {', '.join(sorted(self._handlers))}"):
                consumer.subscribe([*self._handlers], listener=partitions)
                await consumer.start()
            while not self._stopping.is_set():
                await partitions.poll()
            await partitions.finish()
        finally:
            try:
                await partitions.close()
            finally:
                await stop_consumer(consumer)

    async def _process(self, place: TopicPartition, record: Any) -> None:
        handler, rules = self._handlers[place.topic]
        try:
            firing = parse_firing(record)
        except FormatError as error:
            log.warning("%s-%d at offset %d is skipped: %s", place.topic, place.partition, record.offset, error)
        else:
            await handle(self._client, firing, place.topic, rules, handler)
