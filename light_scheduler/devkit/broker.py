"""A Kafka broker as a child process, standalone or in a cluster."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from light_scheduler.errors import BrokerStartError
from light_scheduler.host.jars import kafka_jars
from light_scheduler.host.java import java_executable
from light_scheduler.host.ports import HOST, free_port, port_is_free

from .controller import Seat
from .enclosure import Enclosed
from .leash import Leash, WhenOrphaned
from .properties import NO_FURTHER_PORTS, FurtherPorts, Node, WaysIn, log4j2_properties, server_properties
from .readiness import admin_client, all_in_sync, answers
from .storage import BrokerFolder, new_cluster_id

HEAP_MEGABYTES = 768

_ANSWER_SECONDS = 0.25
_PORT_ATTEMPTS = 3


class JavaStart(NamedTuple):
    """How the Java process of a broker is started: maximum heap size, and additional options.

    `timeout` is in seconds: a broker that does not answer within it counts as failed. Downloading Kafka is not
    included.
    """

    heap_megabytes: int = HEAP_MEGABYTES
    options: Sequence[str] = ()
    timeout: float = 60.0


_DEFAULT_START = JavaStart()


class EmbeddedBroker(Enclosed):
    """A real Kafka broker on 127.0.0.1, for as long as this process lives.

    `port`: a port to use, or None for a free one, which is kept over restarts of this object. `data_dir`: a folder that
    keeps its topics between runs, or None for a temporary one that `close` removes. `properties`: properties of
    `server.properties` that are added to ours or replace them. `further_ports`: ports besides the main one, which
    always works without TLS and login. `java`: how its process is started. `seat`: its place in a cluster (see
    `EmbeddedCluster`). Without one, it is a standalone broker and controller.

    A context manager: entering starts, leaving closes. If this process is killed, the broker ends with it.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        data_dir: Path | None = None,
        properties: Mapping[str, object] | None = None,
        further_ports: FurtherPorts = NO_FURTHER_PORTS,
        java: JavaStart = _DEFAULT_START,
        seat: Seat | None = None,
    ) -> None:
        self._port = port
        self._port_is_chosen = port is not None
        self._temporary = None if data_dir else tempfile.TemporaryDirectory(prefix="light-scheduler-kafka-")
        self._folder = BrokerFolder((data_dir or Path(self._temporary.name if self._temporary else "")).absolute())
        self._properties = properties or {}
        self._further_ports = further_ports
        self._java = java
        self._seat = seat
        self._process: Leash | None = None

    @property
    def port(self) -> int:
        if self._port is None:
            raise BrokerStartError("the broker has no port before its first start")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients: `host:port`."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of Java."""
        if self._process is None:
            raise BrokerStartError("the broker is not running")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def data_dir(self) -> Path:
        return self._folder.root

    @property
    def log_file(self) -> Path:
        """The file in which the broker logs warnings and errors."""
        return self._folder.log_file

    def sees_all_in_sync(self) -> bool:
        """Return whether all replicas of all topics are in sync, as far as this broker knows."""
        return all_in_sync(admin_client(self.bootstrap_servers), _ANSWER_SECONDS)

    def start(self) -> Self:
        """Start the broker and wait until it answers. An existing data folder is used as it is.

        Raises BrokerStartError if Kafka could not be downloaded, the port is in use, or it did not start (with the last
        lines of its log).
        """
        if self.is_running:
            return self
        java, jars = java_executable(), kafka_jars()
        deadline = time.monotonic() + self._java.timeout
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._choose_port()
            try:
                self._launch(java, jars, deadline)
                break
            except BrokerStartError:
                # Another process may have taken the free port between its choice and its use.
                if self._port_is_chosen or attempt == _PORT_ATTEMPTS or port_is_free(self.port):
                    raise
                self._port = None
        self._port_is_chosen = True
        return self

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the broker has ended by itself. Return its exit code. Raises TimeoutError after `timeout` s."""
        if self._process is None:
            raise BrokerStartError("the broker is not running")
        return self._process.wait(timeout)

    def stop(self, timeout: float = 20.0) -> None:
        """Stop the broker cleanly, keeping its data. Kill it if that takes longer than `timeout` seconds."""
        if self._process is not None:
            self._process.stop(timeout)
            self._process = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL, like a power failure. Its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def send_signal(self, signal_number: int) -> None:
        """Send a signal to Java, such as SIGSTOP or SIGCONT."""
        if self._process is not None:
            self._process.send_signal(signal_number)

    def close(self) -> None:
        """Stop the broker and remove temporary data. A closed broker cannot be started again."""
        self.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def _jvm_options(self) -> tuple[str, ...]:
        return (f"-Xmx{self._java.heap_megabytes}m", "-XX:+ExitOnOutOfMemoryError", *self._java.options)

    @property
    def _removed_when_orphaned(self) -> Path | None:
        """The folder to delete if this process is killed."""
        if self._temporary is not None:
            return self._folder.root
        return None if self._seat is None else self._seat.controller.remove_when_orphaned

    def _choose_port(self) -> None:
        if self._port is None:
            self._port = free_port()
        elif not port_is_free(self._port):
            raise BrokerStartError(f"port {self._port} of {HOST} is in use: choose another, or stop what listens there")

    def _launch(self, java: Path, jars: list[Path], deadline: float) -> None:
        folder = self._folder
        base = folder.java_command(java, jars)
        with folder.locked() as lock:
            self._write_configuration()
            if not folder.is_formatted:
                folder.format(base, self._seat.controller.cluster_id if self._seat else new_cluster_id())
            with folder.log_file.open("ab") as log:
                self._process = Leash(
                    [*base, *self._jvm_options, "kafka.Kafka", str(folder.server_properties)],
                    folder=folder.root,
                    output=log,
                    when_orphaned=WhenOrphaned(remove=self._removed_when_orphaned),
                    held_files=[lock],
                )
        try:
            self._await_ready(self._process, deadline)
        except BaseException:
            self.kill()
            raise

    def _write_configuration(self) -> None:
        folder = self._folder
        folder.log4j2_properties.write_text(log4j2_properties(), encoding="utf-8")
        seat = self._seat
        node = Node(free_port())
        if seat is not None:
            node = Node(seat.controller.port, seat.node_id, has_controller=False, copies=seat.controller.copies)
        ways_in = WaysIn(self.port, self._further_ports)
        text = server_properties(ways_in, node, folder.kafka_data, self._properties)
        folder.server_properties.write_text(text, encoding="utf-8")

    def _await_ready(self, process: Leash, deadline: float) -> None:
        admin = admin_client(self.bootstrap_servers)
        while not answers(admin, _ANSWER_SECONDS):
            if (return_code := process.poll()) is not None:
                raise BrokerStartError(
                    f"Kafka ended with exit code {return_code} instead of starting. {self.log_file} ends with:\n"
                    f"{self._folder.log_end()}"
                )
            if time.monotonic() > deadline:
                raise BrokerStartError(
                    f"Kafka did not answer within {self._java.timeout:g} s. {self.log_file} ends with:\n"
                    f"{self._folder.log_end()}"
                )
