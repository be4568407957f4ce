"""Jobs of the pipeline as commands, killed when a topic has so many records."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from light_scheduler.testing import Kafka

from .kafka_records import TIMEOUT_S

WITHOUT_CLASSES = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""Jobs of some seconds are over before the work of Java's second compiler is worth its processor time.

Without it, Java keeps room for a fifth of the code, which a session fills in some tests: from then on, it throws
compiled methods away, and interprets them until it compiles them again. Collecting garbage beside the jobs costs more
processor time than stopping them for it.
"""
CLASSES = Path(__file__).parents[2] / "build" / f"spark-{version('pyspark')}-delta-{version('delta-spark')}.jsa"
"""Where `make sparkclasses` keeps the classes that drivers load, by the versions of what they are of."""
UNHEARD = "-Xlog:disable -Xlog:all=error:stderr"
"""Java warns of each class that it cannot keep, and of each process whose classpath is another."""
QUICK_JAVA = f"{WITHOUT_CLASSES} {UNHEARD} -XX:SharedArchiveFile={CLASSES}" if CLASSES.exists() else WITHOUT_CLASSES
START_TIMEOUT_S = 900.0
LEAST_RATE = 1_000
"""Records a second that any machine writes."""


def quick_environment() -> dict[str, str]:
    """Return the environment for a process that starts a Spark of its own."""
    return {**os.environ, "JDK_JAVA_OPTIONS": QUICK_JAVA}


class Job:
    """`light-scheduler pipeline ...` in a session of its own, so that a kill takes driver, JVM and workers at once.

    `topic` is the one that it writes to.
    """

    def __init__(self, kafka: Kafka, topic: str, folder: Path, *arguments: str) -> None:
        self._bootstrap_servers = kafka.bootstrap_servers
        self._topic = topic
        self._folder = folder
        self._command = [
            *(sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", *arguments),
            *("--broker", f"kafka://{kafka.bootstrap_servers}", "--master", "local[2]", "--memory", "1g", "--json"),
        ]

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command, capture_output=True, text=True, cwd=self._folder, env=quick_environment(), check=False
        )

    def killed_after(self, records: int) -> bool:
        """Run until the topic has so many offsets, then kill; False: it came to its end before."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap_servers, "group.id": f"{self._topic}-looks"})
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=quick_environment(),
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S + records / LEAST_RATE
        try:
            while process.poll() is None and self._offsets(consumer) < records:
                assert time.monotonic() < deadline, (self._folder / "log").read_text(errors="replace")[-4_000:]
                time.sleep(0.02)
        finally:
            is_killed = process.poll() is None
            if is_killed:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            consumer.close()
        return is_killed

    def _offsets(self, consumer: Consumer) -> int:
        partitions = consumer.list_topics(self._topic, timeout=TIMEOUT_S).topics[self._topic].partitions
        parts = [TopicPartition(self._topic, partition) for partition in partitions]
        return sum(consumer.get_watermark_offsets(part, timeout=TIMEOUT_S, cached=False)[1] for part in parts)
