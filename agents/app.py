"""Putting a worker together: a Faust application whose transport feeds lanes."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import faust
from aiokafka import TopicPartition
from faust.tables import TableManager

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.connection import Connection
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import ConfigurationError, SchedulerError
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.kafka.connection import HEARTBEAT_S
from light_scheduler.kafka.probe import Prober
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.kafka.targets import Targets
from light_scheduler.kafka.topic_admin import topic_configuration, topic_id
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.lanes.assigned import Lanes
from light_scheduler.lanes.context import LaneContext
from light_scheduler.lanes.lane import Lane
from light_scheduler.lanes.staging import Staging
from light_scheduler.lanes.tenancy import FixedTenancy, Tenancy
from light_scheduler.logs import logging_config
from light_scheduler.processes import Process
from light_scheduler.settings import Settings
from light_scheduler.tables.loads import MAX_LOADS, Loads
from light_scheduler.tables.rebuilding import Rebuilding
from light_scheduler.tables.recovery import ChangelogFacts
from light_scheduler.tables.services import LaneServices, Timer
from light_scheduler.tables.standby import Standby
from light_scheduler.wire import dialect_named
from light_scheduler.wire.schemas import Schemas

from .credentials import credentials_of
from .faust_worker import PlainWorker, without_banner
from .placements import TopicPlacements
from .startup import refuse_port_in_use, wait_for_access, wait_for_topics
from .transport import LaneConsumer, LaneTransport

TimerFactory = Callable[[Clock, int, Callable[[], None]], Timer]
"""(clock, longest tick in ms, what to call) -> timer."""


MAX_FETCH_BYTES = 1 << 20
METADATA_MAX_AGE_MS = 1_000
"""How soon the group notices that a commands topic was created again, or has grown. A member without partitions fetches
nothing that could fail and make it ask."""

log = logging.getLogger(__name__)


class _NoTables(TableManager):
    """Faust's tables, of which there are none: its own would give them a second to be declared at every start."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


class SchedulerApp(faust.App):
    """The Faust application of a worker."""

    settings: Settings
    lanes: Lanes
    clock: Clock
    refusal: SchedulerError | None = None
    """Why the start was given up."""

    @property
    def ended_by(self) -> BaseException | None:
        """The error that ended the worker, if one did."""
        return self.refusal or self.crash_reason

    async def on_first_start(self) -> None:
        """Wait for the broker and the topics: Faust would exit without the one and overlook the other for long."""
        try:
            await self._await_surroundings()
        except SchedulerError as error:
            self.refusal = error
            raise
        await super().on_first_start()
        # A cycle makes tens of thousands of short-lived values and no reference cycles: by default the collector would
        # walk through all of Faust's objects several times a second, for nothing.
        gc.collect()
        gc.freeze()
        gc.set_threshold(1_000_000, 20, 100)

    async def _await_surroundings(self) -> None:
        settings = self.settings
        log.info(
            "light-scheduler %s, pid %d: application %s, Kafka at %s, HTTP at %s, local state in %s",
            metadata.version("light-scheduler"),
            os.getpid(),
            settings.app_id,
            settings.bootstrap_servers,
            settings.web_url,
            settings.data_dir.absolute(),
        )
        if settings.http_security.serves_tls:  # Faust puts it together as one of HTTP
            self.conf.canonical_url = self.conf.canonical_url.with_scheme("https")
        if self.conf.web_enabled:
            refuse_port_in_use(self.conf.web_bind or settings.web_host, self.conf.web_port)
        await wait_for_topics(settings, lambda: self.should_stop, self.sleep)
        if self.conf.web_enabled:
            host = self.conf.web_bind or settings.web_host
            await wait_for_access(settings, host, self.clock, lambda: self.should_stop, self.sleep)


def create_app(
    settings: Settings,
    new_timer: TimerFactory,
    clock: Clock | None = None,
    secret: Callable[[], bytes | None] = lambda: None,
    tenants: Tenancy | None = None,
    process: Process | None = None,
    **faust_options: Any,
) -> SchedulerApp:
    """Make the application of a worker; agents and web are attached by the caller.

    `secret` returns what workers sign with who asked for a command over HTTP; `tenants` has the rules of tenants.
    `process` says which one of a node's processes it is for: its lines in the log are marked with the number.
    """
    clock = clock or SystemClock()
    without_banner()
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError("data_dir", f"{settings.data_dir} cannot be made: {error.strerror}") from error
    connection = settings.connection
    log_name = None if process is None else str(process.number)
    app = SchedulerApp(
        settings.app_id,
        broker=settings.broker.replace(",", ";"),
        broker_credentials=credentials_of(connection),
        datadir=settings.data_dir / "faust",
        store="memory://",
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_wait_empty=False,
        broker_session_timeout=settings.session_timeout / 1_000,
        broker_heartbeat_interval=min(HEARTBEAT_S, settings.session_timeout / 3_000),
        consumer_group_instance_id=settings.instance_id,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=MAX_FETCH_BYTES,
        consumer_metadata_max_age_ms=METADATA_MAX_AGE_MS,
        # 0 would make Faust use an assignor that does not tell who has what.
        table_standby_replicas=max(1, settings.standby_replicas),
        Worker=PlainWorker,
        TableManager=_NoTables,
        logging_config=logging_config(settings.log_level, settings.log_format, log_name),
        **faust_options,
    )
    app.settings, app.clock = settings, clock
    clients = KafkaClients(connection, settings.transaction_timeout)
    own = settings.reserved_topics - settings.answer_topics
    prober = Prober(settings.app_id, clients.coordinator)
    targets = Targets(connection, own, clock, prober, clients.promptness)
    commands_ids = TopicIds(clients.topic_id, time.monotonic)
    access = settings.registry
    registry = None if access is None else SchemaRegistry(access, Schemas())
    placements = _placements(settings, targets, commands_ids)
    app.add_dependency(placements)
    rebuilding = Rebuilding(clients, settings.log_level, settings.log_format, log_name)
    new_lane, new_standby = _factories(
        app,
        targets,
        clients,
        new_timer,
        commands_ids,
        registry,
        secret,
        rebuilding,
        tenants or FixedTenancy(),
        placements,
    )

    async def release() -> None:
        await targets.close()
        await clients.close()
        if registry is not None:
            await registry.close()

    app.lanes = Lanes(new_lane, new_standby, release, targets.outages)
    transport = LaneTransport(app.conf.broker_consumer, app)
    transport.lanes = app.lanes
    transport.keeps_standbys = settings.standby_replicas > 0
    transport.command_topics = frozenset(source.name for source in settings.inputs)
    transport.promptness = clients.promptness
    app.transport = transport
    return app


def _factories(
    app: SchedulerApp,
    targets: Targets,
    clients: KafkaClients,
    new_timer: TimerFactory,
    commands_ids: TopicIds,
    registry: SchemaRegistry | None,
    secret: Callable[[], bytes | None],
    rebuilding: Rebuilding,
    tenants: Tenancy,
    placements: TopicPlacements,
) -> tuple[Callable[[TopicPartition], Lane], Callable[[TopicPartition], Standby]]:
    settings, clock = app.settings, app.clock
    schemas = None if registry is None else registry.schemas
    dialects = {source.name: dialect_named(source.dialect, schemas) for source in settings.inputs}
    limits = Limits(settings.max_payload_bytes, settings.max_id_bytes, settings.internal_topics, settings.answers_only)
    staging = Staging(settings.stage_ahead)
    rules = FiringRules(settings.lookback_minutes, settings.missed, settings.delivery_retries)

    def consumer() -> LaneConsumer:
        assert isinstance(app.consumer, LaneConsumer)
        return app.consumer

    def make_timer(tick: Callable[[], None]) -> Timer:
        return new_timer(clock, settings.tick, tick)

    async def changelog_facts(topic: str) -> ChangelogFacts:
        return await asyncio.to_thread(_changelog_facts, settings.connection, topic)

    processes = settings.rebuild_processes
    services = LaneServices(
        clients=clients,
        group=app.conf.id,
        clock=clock,
        confirm=lambda tp: consumer().confirm(tp),
        changelog_facts=changelog_facts,
        commands_ids=commands_ids,
        new_timer=make_timer,
        make_room=lambda: consumer().look_around(),
        fail=app.crash,
        max_clock_skew=settings.max_clock_skew,
        loads=Loads(processes or MAX_LOADS),
        rebuilding=rebuilding if processes else None,
        schema_registry=registry,
    )

    def new_lane(tp: TopicPartition) -> Lane:
        dialect, topics = dialects[tp.topic], settings.topics
        context = LaneContext(
            *(tp.topic, tp.partition, dialect, topics, limits, rules, targets),
            shares=settings.shares,
            staging=staging,
            secret=secret,
            tenants=tenants,
            placements=placements if dialect.forwards else None,
        )
        return Lane(context, services, state_path(tp))

    def new_standby(tp: TopicPartition) -> Standby:
        changelog = TopicPartition(settings.topics.changelog(tp.topic), tp.partition)
        return Standby(tp, changelog, services, state_path(tp))

    def state_path(tp: TopicPartition) -> Path:
        return settings.data_dir / settings.app_id / f"{tp.topic}-{tp.partition}"

    return new_lane, new_standby


def _placements(settings: Settings, targets: Targets, ids: TopicIds) -> TopicPlacements:
    async def partitions_of(topic: str) -> int:
        changelog = settings.topics.changelog(topic)
        targets.forget_all()
        await targets.resolve({topic, changelog})
        return min(targets[topic].partitions, targets[changelog].partitions)

    return TopicPlacements(CompactedTopic(settings.connection, settings.topics.tenants), ids, partitions_of)


def _changelog_facts(connection: Connection, topic: str) -> ChangelogFacts:
    return ChangelogFacts(topic_id(connection, topic), topic_configuration(connection, topic).delete_retention_ms)
