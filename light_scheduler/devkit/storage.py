"""The broker's data folder: its layout and one-time formatting."""

from __future__ import annotations

import base64
import fcntl
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from light_scheduler.errors import BrokerStartError

from .java_options import java_options

_FORMAT_TIMEOUT_SECONDS = 60
_FORMAT_OPTIONS = ("-XX:+UseSerialGC",)
_LAST_LINES = 20
_LAST_BYTES = 16_384


@dataclass(frozen=True)
class BrokerFolder:
    """The files of one broker."""

    root: Path

    @property
    def kafka_data(self) -> Path:
        return self.root / "kafka"

    @property
    def server_properties(self) -> Path:
        return self.root / "server.properties"

    @property
    def log4j2_properties(self) -> Path:
        return self.root / "log4j2.properties"

    @property
    def log_file(self) -> Path:
        return self.root / "broker.log"

    @property
    def is_formatted(self) -> bool:
        return (self.kafka_data / "meta.properties").exists()

    @contextmanager
    def locked(self) -> Iterator[IO[bytes]]:
        """Yield a file that holds the folder's lock while any process keeps it open.

        Kafka's own lock comes too late: a second broker would already have written to the metadata log. Raises
        BrokerStartError if another broker uses the folder, or it cannot be written.
        """
        try:
            self.kafka_data.mkdir(parents=True, exist_ok=True)
            with (self.root / "lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield lock
        except BlockingIOError as error:
            raise BrokerStartError(f"the data folder {self.root} is in use by another broker") from error
        except OSError as error:
            raise BrokerStartError(f"the data folder {self.root} cannot be used: {error}") from error

    def java_command(self, java: Path, jars: list[Path]) -> list[str]:
        """Return the command line for a tool or server of Kafka, without its name and options."""
        logging = f"-Dlog4j2.configurationFile={self.log4j2_properties}"
        return [str(java), "-cp", ":".join(map(str, jars)), logging, *java_options(jars)]

    def format(self, java_command: list[str], cluster_id: str) -> None:
        """Give the folder a cluster id. Raises BrokerStartError with the tool's last lines if that fails."""
        command = [
            *java_command,
            *_FORMAT_OPTIONS,
            "kafka.tools.StorageTool",
            "format",
            "--ignore-formatted",
            f"--cluster-id={cluster_id}",
            "--config",
            str(self.server_properties),
        ]
        try:
            with self.log_file.open("ab") as log:
                subprocess.run(  # nosec B603 # Kafka, of jars with known sums
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=True,
                    timeout=_FORMAT_TIMEOUT_SECONDS,
                )
        except (subprocess.SubprocessError, OSError) as error:
            raise BrokerStartError(f"the data folder {self.root} could not be formatted:\n{self.log_end()}") from error

    def log_end(self) -> str:
        """Return the last lines of the broker's log."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(0, 2)
                log.seek(max(0, log.tell() - _LAST_BYTES))
                text = log.read().decode("utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-_LAST_LINES:])


def new_cluster_id() -> str:
    """Return a random id in Kafka's format: a UUID in URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
