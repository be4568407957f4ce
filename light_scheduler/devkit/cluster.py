"""Kafka brokers and their controller, each a child process, so that nodes can be killed one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from light_scheduler.host.jars import kafka_jars
from light_scheduler.host.java import java_executable

from .broker import EmbeddedBroker, JavaStart
from .controller import Controller, Seat
from .enclosure import Enclosed
from .properties import FurtherPorts, SideDoor
from .waiting import wait_until

HEAP_MEGABYTES = 512


class EmbeddedCluster(Enclosed):
    """A cluster of Kafka brokers on 127.0.0.1 with a separate controller, for as long as this process lives.

    Topics have replicas on up to three nodes; with three replicas, `min.insync.replicas` is two. The controller is
    never killed. A node that is both broker and controller finds no leaders in its own log when it comes back, and
    Kafka 4.3 then forgets to end transactions in partitions without a leader at that moment (KAFKA-20734). So
    read_committed readers would stall forever, or read aborted records.

    `data_dir`: a folder that keeps topics between runs, or None for a temporary one that `close` removes. `side_doors`:
    those of each node. `start_timeout` and `heap_megabytes` are for each node, `properties` also for the controller.

    A context manager: entering starts, leaving closes. If this process is killed, the cluster ends with it.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        data_dir: Path | None = None,
        side_doors: Sequence[Sequence[SideDoor]] = (),
        start_timeout: float = 60.0,
        heap_megabytes: int = HEAP_MEGABYTES,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        self._temporary = None if data_dir else tempfile.TemporaryDirectory(prefix="light-scheduler-kafka-")
        root = (data_dir or Path(self._temporary.name if self._temporary else "")).absolute()
        orphaned = root if self._temporary else None
        self.copies = min(nodes, 3)
        """Number of replicas of each topic."""
        self._controller = Controller(
            root / "controller", self.copies, remove_when_orphaned=orphaned, properties=properties
        )
        self.nodes = [
            EmbeddedBroker(
                data_dir=root / f"node-{number + 1}",
                properties=properties,
                further_ports=FurtherPorts(side_doors[number] if side_doors else ()),
                java=JavaStart(heap_megabytes, timeout=start_timeout),
                seat=Seat(number + 1, self._controller),
            )
            for number in range(nodes)
        ]

    @property
    def bootstrap_servers(self) -> str:
        """All addresses for clients: `host:port,host:port`."""
        return ",".join(node.bootstrap_servers for node in self.nodes)

    def start(self) -> Self:
        """Start all nodes that do not run, and wait until every node answers. Raises BrokerStartError."""
        self._controller.start(java_executable(), kafka_jars())
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(EmbeddedBroker.start, self.nodes))
        return self

    def wait_in_sync(self, timeout: float = 120.0) -> None:
        """Wait until every node reports that all replicas are in sync. Raises TimeoutError.

        Only then can another node be stopped without leaving partitions without a leader.
        """
        for node in self.nodes:
            wait_until(
                node.sees_all_in_sync, timeout=timeout, what=f"all copies complete, says {node.bootstrap_servers}"
            )

    def stop(self, timeout: float = 20.0) -> None:
        """Stop the cluster cleanly, keeping its data. Kill processes that take longer than `timeout` seconds."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: node.stop(timeout), self.nodes))
        self._controller.stop(timeout)

    def close(self) -> None:
        """Stop the cluster and remove temporary data. It cannot be started again."""
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()
