"""The process that fills a lost table for a worker. `rebuilding` starts it and reads its progress.

    python -m light_scheduler.tables.rebuild_process

Standard input: one line with the job. When it is closed, the worker is gone, and this process ends too.
Standard output: the progress, a JSON line several times a second. Logs go to standard error.
Exit code: 0 if the table is complete and closed.
"""

from __future__ import annotations

import asyncio
import gc
import logging.config
import os
import signal
import sys
from pathlib import Path

import msgspec
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.clock import SystemClock
from light_scheduler.errors import SchedulerError
from light_scheduler.host.parent import when_parent_ends
from light_scheduler.logs import logging_config

from .changelog import PartitionLogs, reading
from .rebuilding import Job, Reached, decoded
from .recovery import Following, PartitionState, Restoration, restore
from .rocks import RocksStore
from .usable_copy import open_table

TELL_S = 0.2

log = logging.getLogger("light_scheduler.tables.rebuild_process")


def main() -> int:
    """Run the job from standard input and return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal: the worker decides
    gc.set_threshold(1_000_000, 20, 100)  # as in the worker: reference counts free nearly everything
    job = decoded(sys.stdin.buffer.readline())
    when_parent_ends(lambda: os._exit(1))
    logging.config.dictConfig(logging_config(job.log_level, job.log_format, job.log_name))
    try:
        asyncio.run(_rebuild(job))
    except (SchedulerError, KafkaError, OSError) as error:
        log.warning("cannot rebuild %s-%d: %s", job.commands, job.partition, error)
        return 1
    return 0


class _Reporter:
    """Writes the progress of a restoration to standard output."""

    def __init__(self) -> None:
        self._restoration: Restoration | None = None

    def watch(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def report(self) -> None:
        if self._restoration is not None:
            status = self._restoration.status()
            line = msgspec.json.encode(Reached(status.done, status.total, status.records))
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    async def run(self) -> None:
        while True:
            self.report()
            await asyncio.sleep(TELL_S)


async def _rebuild(job: Job) -> None:
    clock, reporter = SystemClock(), _Reporter()
    table = open_table(RocksStore, Path(job.path), job.facts, clock.now())
    logs = PartitionLogs(
        commands=TopicPartition(job.commands, job.partition), changelog=TopicPartition(job.changelog, job.partition)
    )
    reporting = asyncio.create_task(reporter.run())
    try:
        async with reading(job.clients) as reader:
            following = Following(lambda: False, reporter.watch, may_block=True)
            await restore(table, PartitionState(job.facts, logs), reader, clock, following)
    finally:
        reporting.cancel()
        table.close()
    reporter.report()


if __name__ == "__main__":
    sys.exit(main())
