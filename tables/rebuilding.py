"""Fills a lost table in a separate process.

Filling a table of millions of schedules takes minutes of processor time. In a separate process, it does not slow down
running lanes, and several tables are filled in parallel.

    worker ── stdin: the job, then nothing until its end ──> `rebuild_process`
           <──── stdout: `Reached`, a JSON line several times a second ────

RocksDB blocks Python: the process reports nothing during a step, which can take minutes on a slow disk. So it is killed
only if it neither reports progress nor uses processor or disk (`host.activity`).

It starts at the beginning of the changelog, so it only fills empty tables. It works in the lane's folder, so the table
there must be closed. It leaves a table that can be opened; if it fails or is killed, the table is discarded on opening
(see `usable_copy.open_table`).
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import msgspec

from light_scheduler.connection import Secret
from light_scheduler.host.activity import Activity
from light_scheduler.kafka.clients import KafkaClients

from .changelog import STALL_TIMEOUT_S
from .recovery import Following, PartitionState, Restoration
from .usable_copy import ChangelogFacts

MANY_OFFSETS = 200_000
"""Changelog length from which a process pays off: filling the table takes about 1 s, starting a process 0.5 s."""

LOOK_S = 3.0
"""Interval at which the activity of a silent process is checked."""

log = logging.getLogger(__name__)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a process: fill the table at `path` from a partition's changelog."""

    clients: KafkaClients
    changelog: str
    commands: str
    partition: int
    facts: ChangelogFacts
    path: str
    log_level: str
    log_format: str
    log_name: str | None = None


def encoded(job: Job) -> bytes:
    """Return a job as JSON for a pipe. It includes the secrets of the connection."""
    return msgspec.json.encode(job, enc_hook=lambda value: value.reveal() if isinstance(value, Secret) else str(value))


def decoded(content: bytes) -> Job:
    """Return the job from the JSON of `encoded`."""
    return msgspec.json.decode(content, type=Job, dec_hook=lambda kind, text: kind(text))


class Reached(msgspec.Struct, frozen=True):
    """Progress of a process: offsets done, total offsets, and records found."""

    done: int
    total: int
    records: int


class Rebuilding:
    """Starts the processes of a worker.

    They log to standard error with `log_level` and `log_format`. `log_name` marks their lines, if given.
    """

    def __init__(self, clients: KafkaClients, log_level: str, log_format: str, log_name: str | None = None) -> None:
        self._clients = clients
        self._log_level = log_level
        self._log_format = log_format
        self._log_name = log_name

    async def rebuild(self, path: Path, state: PartitionState, following: Following) -> Restoration | None:
        """Fill the closed table at a path and return the restoration; None on failure.

        The process has ended when this returns or raises.
        """
        commands, changelog = state.logs
        job = Job(
            clients=self._clients,
            changelog=changelog.topic,
            commands=commands.topic,
            partition=commands.partition,
            facts=state.facts,
            path=str(path),
            log_level=self._log_level,
            log_format=self._log_format,
            log_name=self._log_name,
        )
        arguments = ("-P", "-m", f"{__package__}.rebuild_process")  # -P: no modules of the current folder
        try:
            process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=PIPE, stdout=PIPE)
        except OSError as error:
            log.warning("cannot start a process to rebuild %s-%d: %s; the worker rebuilds it", *commands, error)
            return None
        try:
            restoration = await _follow(process, job, following)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if process.returncode == 0:
            return restoration
        if not following.stopping():
            log.warning(
                "the process rebuilding %s-%d exited with code %d; the worker rebuilds it",
                *commands,
                process.returncode,
            )
        return None


async def _follow(process: Process, job: Job, following: Following) -> Restoration | None:
    """Send a process its job and read its progress until it ends, stalls, or is not wanted any more."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(encoded(job) + b"\n")
    restoration: Restoration | None = None
    activity, still_s = Activity(process.pid), 0.0
    while not following.stopping():
        try:
            async with asyncio.timeout(LOOK_S):
                line = await process.stdout.readline()
        except TimeoutError:
            still_s = 0.0 if activity.goes_on() else still_s + LOOK_S
            if still_s >= STALL_TIMEOUT_S:
                log.warning("the process rebuilding %s-%d stands still", job.commands, job.partition)
                break
            continue
        still_s = 0.0
        if not line.endswith(b"\n"):  # the process ended, perhaps in the middle of a line
            await process.wait()
            break
        reached = msgspec.json.decode(line, type=Reached)
        if restoration is None:
            restoration = Restoration(0, reached.total, asyncio.get_running_loop().time)
            following.watch(restoration)
        restoration.reached(reached.done, reached.records - restoration.records)
        if restoration.is_worth_a_line():
            log.info("rebuilding %s-%d: %s", job.commands, job.partition, restoration.status())
    return restoration
