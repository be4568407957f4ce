"""Filling a lost table by its own process.

A table of millions of schedules takes a processor for minutes. In its own process it takes another one than the
lanes that run already, and several tables are filled side by side.

    worker ── stdin: the job, then nothing until its end ──> `rebuild_process`
           <──── stdout: `Reached`, a JSON line several times a second ────

While RocksDB works, Python cannot: the process reports nothing during a step, which on a slow disk can take minutes. So
it is given up only if it neither reports anything nor does anything (`host.activity`).

It begins at the beginning, so it is for tables that are empty. It works on the folder that the lane uses, so the table
there must be closed. It leaves a table that can be opened, or, if it fails or is killed, one that is thrown away when
it is opened (see `usable_copy.open_table`).
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
"""A changelog this long is worth a process: it takes about a second to fill a table from, and half of one to start."""

LOOK_S = 3.0
"""How often to look what a process does that reports nothing."""

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
    """Return a job as JSON, with the secrets of its connection: for a pipe."""
    return msgspec.json.encode(job, enc_hook=lambda value: value.reveal() if isinstance(value, Secret) else str(value))


def decoded(content: bytes) -> Job:
    """Return the job that `encoded` made JSON of."""
    return msgspec.json.decode(content, type=Job, dec_hook=lambda kind, text: kind(text))


class Reached(msgspec.Struct, frozen=True):
    """How far a process has come: offsets done, of how many, and the records found there."""

    done: int
    total: int
    records: int


class Rebuilding:
    """Starts the processes of a worker.

    `log_level` and `log_format` are those of their logs, on standard error; `log_name` marks the lines, if given.
    """

    def __init__(self, clients: KafkaClients, log_level: str, log_format: str, log_name: str | None = None) -> None:
        self._clients = clients
        self._log_level = log_level
        self._log_format = log_format
        self._log_name = log_name

    async def rebuild(self, path: Path, state: PartitionState, following: Following) -> Restoration | None:
        """Fill the closed table at a path; return how far that has come, None if it did not succeed.

        The process is gone when this returns or raises.
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
    """Give a process its job and read its progress, until it has ended, stands still, or is not wanted any more."""
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
        if not line.endswith(b"\n"):  # it has ended, perhaps in the middle of a line
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
