"""The controller of a cluster in its own process, so that it outlives killed brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from light_scheduler.host.ports import free_port

from .leash import Leash, WhenOrphaned
from .properties import controller_properties, log4j2_properties
from .storage import BrokerFolder, new_cluster_id

_JVM_OPTIONS = ("-Xmx192m", "-XX:+UseSerialGC")


class Controller:
    """A KRaft controller on 127.0.0.1, in its own folder. It is ready when the first broker that needs it is.

    Topics have `copies` replicas. `remove_when_orphaned` is a folder to delete if this process is killed. `properties`
    are as for `EmbeddedBroker`.
    """

    def __init__(
        self,
        folder: Path,
        copies: int,
        *,
        remove_when_orphaned: Path | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        self._folder = BrokerFolder(folder)
        self.copies = copies
        self.remove_when_orphaned = remove_when_orphaned
        self._properties = properties or {}
        self._process: Leash | None = None
        self.port = free_port()
        self.cluster_id = new_cluster_id()

    def start(self, java: Path, jars: list[Path]) -> None:
        """Start the controller, unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        folder = self._folder
        with folder.locked() as lock:
            folder.log4j2_properties.write_text(log4j2_properties(), encoding="utf-8")
            text = controller_properties(
                port=self.port, log_dir=folder.kafka_data, copies=self.copies, others=self._properties
            )
            folder.server_properties.write_text(text, encoding="utf-8")
            command = folder.java_command(java, jars)
            if not folder.is_formatted:
                folder.format(command, self.cluster_id)
            with folder.log_file.open("ab") as log:
                self._process = Leash(
                    [*command, *_JVM_OPTIONS, "kafka.Kafka", str(folder.server_properties)],
                    folder=folder.root,
                    output=log,
                    when_orphaned=WhenOrphaned(remove=self.remove_when_orphaned),
                    held_files=[lock],
                )

    def stop(self, timeout: float) -> None:
        """Stop the controller cleanly. Kill it if that takes longer than `timeout` seconds."""
        if self._process is not None:
            self._process.stop(timeout)
            self._process = None


@dataclass(frozen=True)
class Seat:
    """A broker's place in a cluster with a separate controller."""

    node_id: int
    controller: Controller
