"""The stage of a run: a broker of its own, and for each round an application with a worker process.

Everything is temporary, and ends with this process however that ends.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from light_scheduler.connection import Connection
from light_scheduler.connection.security import Mechanism, Protocol
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.host.ports import HOST, free_port
from light_scheduler.kafka.topic_admin import TIMEOUT_S, admin_client, awaited, create_topic, create_topics
from light_scheduler.kafka.topic_plan import topic_plan
from light_scheduler.settings import SECURITY_SETTINGS, Settings
from light_scheduler.settings.values import CommandsTopic

from .securing import Secured, broker_with, secured


@dataclass(frozen=True)
class BenchApplication:
    """An application with its own topics, a target topic, and a worker that is not started yet.

    `bootstrap_servers` needs no login, even if the worker's connection does.
    """

    settings: Settings
    target: str
    worker: WorkerProcess
    bootstrap_servers: str


class Stage:
    """A context manager: leaving it removes everything. The broker starts when its address is first needed.

    `partitions`: of each topic. `security_protocol` and `sasl_mechanism`: the connection of workers and of the
    ceiling's clients. All measuring clients use the plain listener.
    """

    def __init__(
        self, partitions: int, security_protocol: Protocol = "PLAINTEXT", sasl_mechanism: Mechanism | None = None
    ) -> None:
        self._partitions = partitions
        self._protocol = security_protocol
        self._mechanism: Mechanism = sasl_mechanism or "PLAIN"
        self._secured: Secured | None = None
        self._running = ExitStack()
        self._numbers = itertools.count(1)
        self._broker: EmbeddedBroker | None = None
        self._folder = Path()

    @property
    def bootstrap_servers(self) -> str:
        if self._broker is None:
            if self._protocol != "PLAINTEXT":
                self._secured = secured(self._protocol, self._folder / "certificates", self._mechanism)
            self._broker = self._running.enter_context(broker_with(self._secured))
        return self._broker.bootstrap_servers

    @property
    def connection(self) -> Connection:
        """The connection of the measured clients."""
        plain = Connection(self.bootstrap_servers)
        if self._secured is None:
            return plain
        return Connection(f"{HOST}:{self._secured.listener.port}", self._secured.security)

    @property
    def broker_folder(self) -> Path | None:
        """The folder that contains the broker's topics; None before its start."""
        return None if self._broker is None else self._broker.data_dir

    @contextmanager
    def application(
        self, stage_ahead_ms: int = Settings.stage_ahead, dialect: str = "native", schema_registry: str | None = None
    ) -> Iterator[BenchApplication]:
        """Yield an application. On leaving, its worker is stopped and its topics and state are removed.

        Its settings are the defaults, whatever the environment contains, except for `stage_ahead_ms`, the dialect of
        its commands topic, and the address of its schema registry.
        """
        app_id = f"bench-{next(self._numbers)}"
        folder = self._folder / app_id
        connection = self.connection
        settings = Settings(
            app_id=app_id,
            broker=f"kafka://{connection.bootstrap_servers}",
            **{name: getattr(connection.security, name) for name in SECURITY_SETTINGS},
            data_dir=folder / "state",
            web_port=free_port(),
            partitions=self._partitions,
            instance_id=f"{app_id}-worker",
            stage_ahead=stage_ahead_ms,
            commands_topics=(CommandsTopic(f"{app_id}-commands", dialect),),
            schema_registry=schema_registry,
        )
        application = BenchApplication(
            settings,
            f"{app_id}-target",
            WorkerProcess(settings, folder / "worker.log", remove_when_orphaned=self._folder),
            self.bootstrap_servers,
        )
        create_topics(settings)
        create_topic(self.bootstrap_servers, application.target, self._partitions)
        try:
            yield application
        finally:
            application.worker.stop()
        self._delete_topics([*(spec.name for spec in topic_plan(settings)), application.target])
        shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def topics(self, partitions: int, *names: str) -> Iterator[None]:
        """Create plain topics, and remove them on leaving."""
        for name in names:
            create_topic(self.bootstrap_servers, name, partitions)
        yield
        self._delete_topics(list(names))

    def __enter__(self) -> Self:
        self._folder = Path(self._running.enter_context(tempfile.TemporaryDirectory(prefix="light-scheduler-bench-")))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.close()

    def _delete_topics(self, names: list[str]) -> None:
        """Delete topics, so that the next round does not depend on this one."""
        admin = admin_client(self.bootstrap_servers)  # kept alive until all have answered: the requests end with it
        futures = admin.delete_topics(names, operation_timeout=TIMEOUT_S, request_timeout=TIMEOUT_S)
        for name, future in futures.items():
            awaited(future, TIMEOUT_S, f"deleting topic {name}")
