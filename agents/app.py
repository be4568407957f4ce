"""Creates the application of a worker: a Faust application whose transport feeds lanes."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable
from importlib import metadata
from typing import Any, NoReturn, cast

import faust
from faust.cli.base import cli
from faust.tables import TableManager

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.errors import ConfigurationError, SchedulerError
from light_scheduler.kafka.connection import HEARTBEAT_S, NEVER_MS
from light_scheduler.lanes.assigned_lanes import Lanes
from light_scheduler.lanes.context.tenancy import FixedTenancy, Tenancy
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.logs import logging_config
from light_scheduler.processes import Process, unused_folders
from light_scheduler.settings import Settings

from .assembly import Assembly, Host, TimerFactory
from .assigned_peers import AssignedPeers
from .credentials import credentials_of
from .faust_assignor import LaneAssignor
from .faust_worker import PlainWorker, without_banner
from .startup import refuse_port_in_use, wait_for_access, wait_for_topics
from .transport import LaneConsumer, LaneTransport

REQUEST_TIMEOUT_S, JOIN_S = 90.0, 10.0
MAX_FETCH_BYTES = 1 << 20
METADATA_MAX_AGE_MS = 1_000
"""How soon the group notices that a commands topic was recreated or has grown. A member without partitions has no
failing fetches that would make it refresh earlier.
"""

log = logging.getLogger(__name__)


class _NoTables(TableManager):
    """Faust's tables, of which there are none. Faust's own manager would wait a second for them at each start."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


class SchedulerApp(faust.App):
    """The Faust application of a worker."""

    settings: Settings
    lanes: Lanes
    clock: Clock
    exchange: RateExchange
    """Carries messages between lanes that share no log."""
    process: Process | None
    """The process of a node that it runs in, if any."""
    refusal: SchedulerError | None = None
    """The error that ended the start."""

    @property
    def ended_by(self) -> BaseException | None:
        """The error that ended the worker, if one did."""
        return self.refusal or self.crash_reason

    def main(self) -> NoReturn:
        """Run Faust's command line with `worker` only. The module with all commands takes long to import."""
        self.finalize()
        self.worker_init()
        self.worker_init_post_autodiscover()
        cli(app=self)
        raise AssertionError("Faust's command line ends by SystemExit")

    async def on_first_start(self) -> None:
        """Wait for the broker and the topics. Faust would exit without a broker, and not notice new topics for long."""
        try:
            await self._await_surroundings()
        except SchedulerError as error:
            self.refusal = error
            raise
        await super().on_first_start()
        # A lane cycle makes tens of thousands of short-lived values and no reference cycles. By default, the collector
        # would traverse all of Faust's objects several times a second for nothing.
        gc.collect()
        gc.freeze()
        gc.set_threshold(1_000_000, 20, 100)

    def on_rebalance_end(self) -> None:
        super().on_rebalance_end()
        if cast("LaneAssignor", self.assignor).is_known_elsewhere:
            cast("LaneConsumer", self.consumer).join_again()

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
        for folder in unused_folders(settings, self.process):
            log.warning(
                "no process of this node uses the local state in %s: delete the folder to free its space, unless you "
                "start more processes again",
                folder.absolute(),
            )
        if settings.http_security.serves_tls:  # Faust always makes it an http URL
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
    """Create the application of a worker. The caller attaches agents and web.

    `secret` returns the key with which workers sign the requester of a command sent over HTTP. `tenants` has the rules
    of tenants. `process` is the process of a node that it runs in; its number marks the log lines.
    """
    without_banner()
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError("data_dir", f"{settings.data_dir} cannot be created: {error.strerror}") from error
    log_name = None if process is None else str(process.number)
    app = SchedulerApp(settings.app_id, **_faust_settings(settings, log_name), **faust_options)
    app.settings, app.clock, app.process = settings, clock or SystemClock(), process

    def consumer() -> LaneConsumer:
        assert isinstance(app.consumer, LaneConsumer)
        return app.consumer

    app.exchange = RateExchange(AssignedPeers(app), [source.name for source in settings.inputs])
    host = Host(settings, app.clock, app.conf.id, consumer, app.crash, app.exchange, log_name)
    assembly = Assembly(host, new_timer, secret, tenants or FixedTenancy())
    app.add_dependency(assembly.partitionings)
    app.lanes = Lanes(
        assembly.new_lane,
        assembly.new_standby,
        assembly.release,
        assembly.targets.outages,
        assembly.tenant_firings,
        assembly.topic_totals,
    )
    transport = LaneTransport(app.conf.broker_consumer, app)
    transport.lanes = app.lanes
    transport.keeps_standbys = settings.standby_replicas > 0
    transport.command_topics = frozenset(source.name for source in settings.inputs)
    transport.promptness = assembly.clients.promptness
    app.transport = transport
    return app


def _faust_settings(settings: Settings, log_name: str | None) -> dict[str, Any]:
    return {
        "broker": settings.broker.replace(",", ";"),
        "broker_credentials": credentials_of(settings.connection),
        "datadir": settings.data_dir / "faust",
        "store": "memory://",
        "topic_disable_leader": True,
        "topic_allow_declare": False,
        "stream_wait_empty": False,
        "broker_session_timeout": settings.session_timeout / 1_000,
        # Faust refuses a request timeout that is shorter than the session timeout.
        "broker_request_timeout": max(REQUEST_TIMEOUT_S, settings.session_timeout / 1_000 + JOIN_S),
        "broker_heartbeat_interval": min(HEARTBEAT_S, settings.session_timeout / 3_000),
        "broker_max_poll_interval": NEVER_MS / 1_000,
        "consumer_group_instance_id": settings.instance_id,
        "consumer_auto_offset_reset": "earliest",
        "consumer_max_fetch_size": MAX_FETCH_BYTES,
        "consumer_metadata_max_age_ms": METADATA_MAX_AGE_MS,
        # With 0, Faust would use an assignor that does not publish who owns which partition.
        "table_standby_replicas": max(1, settings.standby_replicas),
        "PartitionAssignor": LaneAssignor,
        "Worker": PlainWorker,
        "TableManager": _NoTables,
        "logging_config": logging_config(settings.log_level, settings.log_format, log_name),
    }
