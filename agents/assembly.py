"""Creates the lanes and standbys of a worker, and their shared services."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aiokafka import TopicPartition

from light_scheduler.clock import Clock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import BrokerError, ConfigurationError
from light_scheduler.host.processor_waits import ProcessorWaits
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.kafka.target_probe import Prober
from light_scheduler.kafka.targets import Targets
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.lanes.context.shared import SharedByLanes
from light_scheduler.lanes.context.staging import Staging
from light_scheduler.lanes.context.tenancy import Tenancy
from light_scheduler.lanes.context.tenant_firings import TenantFirings
from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.lanes.context.turns import Turns
from light_scheduler.lanes.lane import Lane
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.settings import Settings
from light_scheduler.tables.load_turns import MAX_LOADS, Loads
from light_scheduler.tables.rebuilding import Rebuilding
from light_scheduler.tables.services import LaneServices, Timer
from light_scheduler.tables.standby import Standby
from light_scheduler.wire import dialect_named
from light_scheduler.wire.schemas import Schemas

from .changelog_facts import ChangelogFactsLookUp
from .services.partitionings import TopicPartitionings
from .startup import warn_of_idle_state
from .transport import LaneConsumer

if TYPE_CHECKING:
    from light_scheduler.tracing import OpenTelemetry

TimerFactory = Callable[[Clock, int, Callable[[], None]], Timer]
"""(clock, longest tick in ms, callback) -> timer."""


@dataclass(frozen=True)
class Host:
    """The application in which lanes run.

    `group` is the consumer group. `consumer` returns the application's consumer, once it exists. `fail` ends the worker
    with an error. `exchange` carries messages between lanes that share no log. `log_name` marks log lines; None if
    there is only one process.
    """

    settings: Settings
    clock: Clock
    group: str
    consumer: Callable[[], LaneConsumer]
    fail: Callable[[BaseException], Awaitable[None]]
    exchange: RateExchange
    log_name: str | None


class Assembly:
    """Creates a worker's lanes, which share `clients`, `targets` and `partitionings`. Call `release` after the last."""

    def __init__(
        self, host: Host, new_timer: TimerFactory, secret: Callable[[], bytes | None], tenants: Tenancy
    ) -> None:
        self._settings = settings = host.settings
        self._secret = secret
        self._tenants = tenants
        self.tenant_firings = TenantFirings()
        self._turns = Turns()
        self.topic_totals = {source.name: TopicTotals() for source in settings.inputs}
        self.clients = KafkaClients(settings.connection, settings.transaction_timeout)
        self.targets = Targets(
            settings.connection,
            settings.reserved_topics - settings.answer_topics - settings.states_topics,
            host.clock,
            Prober(settings.app_id, self.clients.coordinator),
            self.clients.promptness,
        )
        self._commands_ids = TopicIds(self.clients.topic_id, time.monotonic)
        self._registry = None if settings.registry is None else SchemaRegistry(settings.registry, Schemas())
        tenants_topic = CompactedTopic(settings.connection, settings.topics.tenants, promptness=self.clients.promptness)
        self.partitionings = TopicPartitionings(tenants_topic, self._commands_ids, self._partitions_of)
        schemas = None if self._registry is None else self._registry.schemas
        self._dialects = {source.name: dialect_named(source.dialect, schemas) for source in settings.inputs}
        self._exchange = host.exchange
        self._limits = Limits.of(settings)
        self._rules = FiringRules(settings.lookback_minutes, settings.missed, settings.delivery_retries)
        self._staging = Staging(settings.stage_ahead)
        self._tracing = _tracing_of(settings)
        self._services = self._services_of(host, new_timer)

    def new_lane(self, place: TopicPartition) -> Lane:
        """Return the lane of a commands topic's partition."""
        dialect = self._dialects[place.topic]
        context = LaneContext(
            *(place.topic, place.partition, dialect, self._settings.topics, self._limits, self._rules, self.targets),
            shares=self._settings.shares,
            staging=self._staging,
            secret=self._secret,
            rate_post=self._exchange.post_of((place.topic, place.partition)),
            tenants=self._tenants,
            partitionings=self.partitionings if dialect.forwards else None,
            # The fast paths write no traces.
            plain_paths=self._tracing is None,
            shared=SharedByLanes(
                self.tenant_firings, self.topic_totals[place.topic], self._turns, tracing=self._tracing
            ),
        )
        return Lane(context, self._services, self._state_path(place))

    def new_standby(self, place: TopicPartition) -> Standby:
        """Return a standby for a partition of a commands topic."""
        changelog = TopicPartition(self._settings.topics.changelog(place.topic), place.partition)
        return Standby(place, changelog, self._services, self._state_path(place))

    async def release(self) -> None:
        """Close the clients and services that lanes share."""
        await self.targets.close()
        await self.clients.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        if self._registry is not None:
            await self._registry.close()

    def _services_of(self, host: Host, new_timer: TimerFactory) -> LaneServices:
        settings, clients = self._settings, self.clients
        processes = settings.rebuild_processes
        rebuilding = Rebuilding(clients, settings.log_level, settings.log_format, host.log_name)
        return LaneServices(
            clients=clients,
            group=host.group,
            clock=host.clock,
            confirm=lambda place: host.consumer().confirm(place),
            changelog_facts=ChangelogFactsLookUp(settings.connection),
            commands_ids=self._commands_ids,
            new_timer=lambda tick: new_timer(host.clock, settings.tick, tick),
            make_room=lambda: host.consumer().look_around(),
            fail=host.fail,
            max_clock_skew=settings.max_clock_skew,
            loads=Loads(processes or MAX_LOADS),
            rebuilding=rebuilding if processes else None,
            schema_registry=self._registry,
            processor_waits=ProcessorWaits(time.monotonic).share,
        )

    def _state_path(self, place: TopicPartition) -> Path:
        return self._settings.data_dir / self._settings.app_id / f"{place.topic}-{place.partition}"

    async def _partitions_of(self, topic: str) -> int:
        """Return the number of partitions that both a commands topic and its changelog have. Raises BrokerError."""
        names = topic, self._settings.topics.changelog(topic)
        self.targets.forget(set(names))
        await self.targets.resolve(set(names))
        for name in names:
            if (refusal := self.targets[name].refusal) is not None:
                raise BrokerError(f"{refusal}; `light-scheduler topics create` makes missing topics")
        partitions = {name: self.targets[name].partitions for name in names}
        warn_of_idle_state(self._settings, topic, partitions)
        return min(partitions.values())


def _tracing_of(settings: Settings) -> OpenTelemetry | None:
    if not settings.tracing:
        return None
    try:
        from light_scheduler.tracing import OpenTelemetry
    except ImportError as error:
        raise ConfigurationError(
            "tracing", "needs the extra `tracing`: pip install 'light-scheduler[tracing]'"
        ) from error
    return OpenTelemetry.over_otlp(settings.app_id)
