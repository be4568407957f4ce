"""Putting a worker together: a Faust application whose transport feeds lanes."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faust
from aiokafka import TopicPartition
from faust.tables import TableManager

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import BrokerError, ConfigurationError
from light_scheduler.settings import Settings
from light_scheduler.wire import dialect_named

from .clients import KafkaClients
from .context import LaneContext
from .lane import Lane
from .lanes import Lanes
from .logs import logging_config
from .rebuilding import Rebuilding
from .recovery import MAX_LOADS, ChangelogFacts
from .services import LaneServices, Timer
from .staging import Staging
from .standby import Standby
from .targets import Targets
from .topic_admin import topic_config, topic_id
from .transport import LaneConsumer, LaneTransport

TimerFactory = Callable[[Clock, int, Callable[[], None]], Timer]
"""(clock, longest tick in ms, what to call) -> timer."""

HEARTBEAT_S = 0.3
"""Members learn of a rebalance with a heartbeat: this bounds how long a partition pauses when a worker leaves."""

MAX_FETCH_BYTES = 1 << 20
BROKER_RETRY_S = 1.0
DEFAULT_DELETE_RETENTION_MS = 86_400_000

log = logging.getLogger(__name__)


class _Worker(faust.Worker):
    """Faust's worker process, with logging as the settings have it."""

    def on_setup_root_logger(self, logger: logging.Logger, level: int) -> None:  # noqa: ARG002
        """Keep the levels: Faust would set its own default, and draw a spinner between the lines."""
        self.spinner = None


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

    async def on_first_start(self) -> None:
        """Wait for the broker and the topics: Faust would exit without the one and overlook the other for long."""
        await self._wait_for_topics()
        await super().on_first_start()
        # A cycle makes tens of thousands of short-lived values and no reference cycles: by default the collector would
        # walk through all of Faust's objects several times a second, for nothing.
        gc.collect()
        gc.freeze()
        gc.set_threshold(1_000_000, 20, 100)

    async def _wait_for_topics(self) -> None:
        targets = Targets(self.settings.bootstrap_servers)
        inputs = {source.name for source in self.settings.inputs}
        needed = inputs | {self.settings.topics.changelog(name) for name in inputs}
        needed |= {self.settings.topics.history, self.settings.topics.dead_letters}
        needed |= {self.settings.topics.delays, self.settings.topics.delay_positions}
        try:
            while not self.should_stop:
                try:
                    await targets.resolve(needed)
                    missing = [refusal for topic in sorted(needed) if (refusal := targets[topic].refusal) is not None]
                    if not missing:
                        self._check_partitions(inputs, targets)
                        return
                    log.warning("waiting: %s; run `light-scheduler topics create`", ", ".join(missing))
                except BrokerError as error:
                    log.warning("waiting for the broker: %s", error)
                await self.sleep(BROKER_RETRY_S)
        finally:
            await targets.close()

    def _check_partitions(self, inputs: set[str], targets: Targets) -> None:
        for name in inputs:
            changelog = self.settings.topics.changelog(name)
            if targets[name].partitions != targets[changelog].partitions:
                raise ConfigurationError(
                    "commands_topics",
                    f"{name} has {targets[name].partitions} partitions and its changelog {changelog} has "
                    f"{targets[changelog].partitions}; they must be the same: run `light-scheduler topics check`",
                )


def create_app(
    settings: Settings, new_timer: TimerFactory, clock: Clock | None = None, **faust_options: Any
) -> SchedulerApp:
    """Make the application of a worker; agents and web are attached by the caller."""
    clock = clock or SystemClock()
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    app = SchedulerApp(
        settings.app_id,
        broker=settings.broker.replace(",", ";"),
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
        # 0 would make Faust use an assignor that does not tell who has what.
        table_standby_replicas=max(1, settings.standby_replicas),
        Worker=_Worker,
        TableManager=_NoTables,
        logging_config=logging_config(settings.log_level, settings.log_format),
        **faust_options,
    )
    app.settings, app.clock = settings, clock
    targets = Targets(settings.bootstrap_servers)
    new_lane, new_standby = _factories(app, targets, new_timer)
    app.lanes = Lanes(new_lane, new_standby, release=targets.close)
    transport = LaneTransport(app.conf.broker_consumer, app)
    transport.lanes = app.lanes
    transport.keeps_standbys = settings.standby_replicas > 0
    transport.command_topics = frozenset(source.name for source in settings.inputs)
    app.transport = transport
    return app


def _factories(
    app: SchedulerApp, targets: Targets, new_timer: TimerFactory
) -> tuple[Callable[[TopicPartition], Lane], Callable[[TopicPartition], Standby]]:
    settings, clock = app.settings, app.clock
    dialects = {source.name: dialect_named(source.dialect) for source in settings.inputs}
    limits = Limits(settings.max_payload_bytes, settings.max_id_bytes, settings.internal_topics)
    staging = Staging(settings.stage_ahead)
    rules = FiringRules(settings.lookback_minutes, settings.missed, settings.delivery_retries)

    def consumer() -> LaneConsumer:
        assert isinstance(app.consumer, LaneConsumer)
        return app.consumer

    def make_timer(tick: Callable[[], None]) -> Timer:
        return new_timer(clock, settings.tick, tick)

    async def changelog_facts(topic: str) -> ChangelogFacts:
        return await asyncio.to_thread(_changelog_facts, settings.bootstrap_servers, topic)

    clients = KafkaClients(settings.bootstrap_servers, settings.transaction_timeout)
    processes = settings.rebuild_processes
    services = LaneServices(
        clients=clients,
        group=app.conf.id,
        clock=clock,
        confirm=lambda tp: consumer().confirm(tp),
        changelog_facts=changelog_facts,
        new_timer=make_timer,
        make_room=lambda: consumer().look_around(),
        fail=app.crash,
        max_clock_skew=settings.max_clock_skew,
        loads=asyncio.Semaphore(processes or MAX_LOADS),
        rebuilding=Rebuilding(clients, settings.log_level, settings.log_format) if processes else None,
    )

    def new_lane(tp: TopicPartition) -> Lane:
        dialect, topics = dialects[tp.topic], settings.topics
        context = LaneContext(tp.topic, tp.partition, dialect, topics, limits, rules, targets, settings.shares, staging)
        return Lane(context, services, state_path(tp))

    def new_standby(tp: TopicPartition) -> Standby:
        changelog = TopicPartition(settings.topics.changelog(tp.topic), tp.partition)
        return Standby(tp, changelog, services, state_path(tp))

    def state_path(tp: TopicPartition) -> Path:
        return settings.data_dir / settings.app_id / f"{tp.topic}-{tp.partition}"

    return new_lane, new_standby


def _changelog_facts(bootstrap_servers: str, topic: str) -> ChangelogFacts:
    configured = topic_config(bootstrap_servers, topic).get("delete.retention.ms")
    retention = DEFAULT_DELETE_RETENTION_MS if configured is None else int(configured)
    return ChangelogFacts(topic_id(bootstrap_servers, topic), retention)
