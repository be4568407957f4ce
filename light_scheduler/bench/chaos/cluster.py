"""The stage of a run: brokers, workers, and proxies between them. Everything is temporary."""

from __future__ import annotations

import resource
import shutil
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from light_scheduler.bench.looks import info_of
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.devkit.cluster import EmbeddedCluster
from light_scheduler.devkit.properties import SideDoor
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.errors import BrokerError
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.model.lane_state import LaneState
from light_scheduler.settings import Settings

from .proxy import Proxies
from .reading import ends_of
from .workload import AHEAD, COMPLETED, NARROW, NARROW_BYTES, PLAIN, Topics

SESSION_TIMEOUT_MS = 3_000
TRANSACTION_TIMEOUT_MS = 5_000
_SETTLE_S = 180.0
_STOP_S = 20.0
_POLL_S = 0.25


class Worker:
    """A worker, and operations on it. Hold `lock` from an operation until it is undone.

    `ways` are the numbers of its proxies, by broker.
    """

    def __init__(self, number: int, process: WorkerProcess, proxies: Proxies, ways: Sequence[int]) -> None:
        self.number = number
        self.lock = threading.Lock()
        self._process = process
        self._proxies = proxies
        self._ways = ways

    def start(self) -> None:
        self._process.start()

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        """Stop it cleanly. Kill it if it does not end."""
        self._process.stop(_STOP_S)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def forget(self) -> None:
        """Delete its state. It must not be running."""
        shutil.rmtree(self._process.settings.data_dir)

    def starve(self) -> None:
        """Stop its files from growing, as on a full disk."""
        self._limit_files(0)

    def feed(self) -> None:
        self._limit_files(resource.RLIM_INFINITY)

    def network(self, order: str, broker: int | None) -> None:
        """`cut`, `stall` or `heal` its connection to a broker, or to all of them."""
        for way in self._ways if broker is None else [self._ways[broker]]:
            self._proxies.order(order, way)

    @property
    def is_running(self) -> bool:
        return self._process.pid is not None and self._process.return_code is None

    @property
    def process(self) -> WorkerProcess:
        return self._process

    def _limit_files(self, size: int) -> None:
        pid = self._process.pid
        if pid is not None and self.is_running:
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class Cluster:
    """`workers` run all the time, and a guest joins them from time to time. A context manager.

    `folder` keeps logs and state, `partitions` is the number for each topic. Each worker reaches each broker through
    its own proxy.
    """

    def __init__(self, folder: Path, partitions: int, workers: int, brokers: int) -> None:
        self.app_id = "chaos"
        self.topics = Topics(self.app_id)
        self.partitions = {self.topics.target(name): partitions for name in (PLAIN, AHEAD, COMPLETED, NARROW)}
        self._count = partitions
        self._folder = folder
        self._stack = ExitStack()
        self._doors = [[SideDoor(free_port(), free_port()) for _ in range(workers + 1)] for _ in range(brokers)]
        self._kafka = EmbeddedCluster(brokers, data_dir=folder / "kafka", side_doors=self._doors, start_timeout=120)
        self.broker_lock = threading.Lock()
        """Held from an operation on a broker until all replicas are in sync, so that at most one of several brokers is
        down."""
        self._settings = [self._worker_settings(number) for number in range(workers + 1)]
        self.workers: list[Worker] = []

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' own addresses, without proxies."""
        return self._kafka.bootstrap_servers

    @property
    def brokers(self) -> list[EmbeddedBroker]:
        return self._kafka.nodes

    def wait_in_sync(self) -> None:
        """Wait until all replicas of every broker are in sync."""
        self._kafka.wait_in_sync()

    @property
    def commands_topic(self) -> str:
        return self._settings[0].topics.commands

    @property
    def dead_letters_topic(self) -> str:
        return self._settings[0].topics.dead_letters

    @property
    def guest(self) -> Worker:
        """The worker that comes and goes. It does not run at first."""
        return self.workers[-1]

    @property
    def steady(self) -> list[Worker]:
        return self.workers[:-1]

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._kafka)
            routes = [(door.advertised_port, door.port) for doors in self._doors for door in doors]
            proxies = starting.enter_context(Proxies(routes))
            self._create_topics()
            for number, settings in enumerate(self._settings):
                process = WorkerProcess(settings, self._folder / f"worker-{number}.log")
                self.workers.append(Worker(number, process, proxies, range(number, len(routes), len(self._settings))))
                starting.callback(process.kill)
            for worker in self.steady:
                worker.start()
            for worker in self.steady:
                worker.process.wait_ready(120)
            self._stack = starting.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def settle(self) -> str | None:
        """Wait until no command is waiting and no schedule is pending. Return what is left after some minutes; None:
        nothing."""
        deadline = time.monotonic() + _SETTLE_S
        while True:
            try:
                left = self._left(ends_of(self.bootstrap_servers, self.commands_topic))
            except BrokerError as error:  # the broker may have just come back
                left = str(error)
            if left is None or time.monotonic() > deadline:
                return left
            time.sleep(_POLL_S)

    def stop_workers(self) -> None:
        """Stop all workers cleanly, so that they close their transactions."""
        for worker in self.workers:
            if worker.is_running:
                worker.stop()

    def _left(self, ends: Mapping[int, int]) -> str | None:
        positions: dict[int, int] = {}
        pending = 0
        for worker in self.workers:
            if not worker.is_running:
                continue
            if (info := info_of(worker.process)) is None:
                return f"worker {worker.number} does not answer"
            for lane in info.lanes:
                pending += lane.pending
                if lane.state == LaneState.RUNNING and lane.position is not None:
                    positions[lane.partition] = lane.position
        waiting = {partition: end for partition, end in ends.items() if positions.get(partition, -1) < end}
        if waiting:
            return f"commands are at {positions}, and end at {waiting}"
        return f"{pending} schedules are pending" if pending else None

    def _worker_settings(self, number: int) -> Settings:
        return Settings(
            app_id=self.app_id,
            broker="kafka://" + ",".join(f"127.0.0.1:{doors[number].advertised_port}" for doors in self._doors),
            data_dir=self._folder / f"worker-{number}",
            web_port=free_port(),
            partitions=self._count,
            replication_factor=self._kafka.copies,
            session_timeout=SESSION_TIMEOUT_MS,
            transaction_timeout=TRANSACTION_TIMEOUT_MS,
            delivery_retries=0,
            # Half of the workers come back under the same name, the others as new members.
            instance_id=f"worker-{number}" if number % 2 == 0 else None,
        )

    def _create_topics(self) -> None:
        create_topics(self._settings[0], timeout=60)
        when_appended = {"message.timestamp.type": "LogAppendTime"}
        for name, partitions in self.partitions.items():
            narrow = {"max.message.bytes": str(NARROW_BYTES)} if name == self.topics.target(NARROW) else {}
            stamps = {} if name == self.topics.target(AHEAD) else when_appended
            create_topic(self.bootstrap_servers, name, partitions, configs={**stamps, **narrow})
        create_topic(self.bootstrap_servers, self.topics.answers, self._count, configs=when_appended)
