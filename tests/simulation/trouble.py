"""A target that takes nothing, slowly, or with errors: what it does, and what others must not notice of it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from aiokafka.errors import (
    CorruptRecordException,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTxnState,
    KafkaError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnsupportedForMessageFormatError,
)

from .log import Log, Transaction
from .records import header, json, sent, to
from .violation import Violation

ERRORS: tuple[type[KafkaError], ...] = (
    InvalidTxnState,
    UnknownError,
    InvalidTimestampError,
    CorruptRecordException,
    NotEnoughReplicasError,
    KafkaStorageError,
    PolicyViolationError,
    RecordListTooLargeError,
    MessageSizeTooLargeError,
    UnsupportedForMessageFormatError,
    InvalidTopicError,
    TopicAuthorizationFailedError,
)
LONGEST_MS = {"silent": 7_000, "slow": 7_000, "refuses": 8_000}
"""How late whatever goes elsewhere may be while a lane finds out: it waits, gives up, and does the rest again."""
NAMELESS_MS = 30_000
"""Likewise if the error breaks the transaction and does not say which of its records or partitions it is about."""
RETURN_MS = 3_000
SLOW_S = 3.0
"""What a record takes of a slow partition: three in a transaction are too many for its deadline."""


BESIDE_AWAY_MS, AFTER_AWAY_MS = 14_000, 6_000
"""How late may be what needs no partition that takes nothing, and what does after its return. Each lane that a command
goes through may find that its transactional id is stuck, and that the partition is silent; of these lanes none tells
another. And a bulk command goes there and back."""
TOLD_S = 0.3
"""When the metadata tell what has become of a partition."""


class Trouble(NamedTuple):
    """What happens in some partitions of the target `FRAIL` between two instants (s).

    kind    `silent`: no batch is answered before the end; `slow`: each record takes some seconds; `refuses`: `error`
    """

    kind: str
    partitions: tuple[int, ...]
    begins: float
    ends: float
    error: type[KafkaError] | None = None

    def seconds(self, records: int, now: float) -> float:
        """How long a batch of so many records takes to be answered."""
        if self.kind == "silent":
            return self.ends - now
        return SLOW_S * records if self.kind == "slow" else 0.0


class Away(NamedTuple):
    """A partition of the commands topic takes and tells nothing between two instants (s).

    If it `is_told`, the metadata tell so, somewhat later; else only who writes to it finds out. If it `drops_markers`,
    what is told is that it has no leader, and it never gets the markers that it would get then (KAFKA-20734).
    """

    partition: int
    begins: float
    ends: float
    is_told: bool
    drops_markers: bool = False

    def is_so(self, at: float) -> bool:
        """Return whether it takes nothing at an instant (s)."""
        return self.begins <= at < self.ends

    def is_known(self, at: float) -> bool:
        """Return whether the metadata tell so at an instant (s)."""
        return self.is_told and self.is_so(at - TOLD_S)


def draw_trouble_of(random: Random) -> Trouble:
    """Make one up."""
    kind = random.choice(("silent", "silent", "slow", "refuses", "refuses"))
    begins = random.random() * 4
    return Trouble(
        kind,
        random.choice(((0,), (1,), (0, 1))),
        begins,
        begins + random.choice((2.0, 9.0, 20.0)) * (0.5 + random.random()),
        random.choice(ERRORS) if kind == "refuses" else None,
    )


def check_others(
    commits: Iterable[Transaction], trouble: Trouble, commands: dict[int, Log], target: str, frail: str, epoch_ms: int
) -> None:
    """Raise Violation if anything that has nothing to do with a trouble was late, or what waited came late after it."""
    longest_ms = NAMELESS_MS if trouble.error is InvalidTxnState else LONGEST_MS[trouble.kind]
    back_ms = epoch_ms + round(1_000 * trouble.ends)
    for commit in commits:
        at = epoch_ms + int(commit.decided_at * 1_000)
        for answer in map(json, to(commit, "replies")):
            sent_at = _sent_at(commands, answer["partition"], answer["offset"])
            if at - sent_at > longest_ms:
                raise Violation(f"{answer} came {at - sent_at} ms after its command")
        for firing in commit.records:
            if firing.topic not in (target, frail):
                continue
            source = (int(header(firing, f"schedule-source-{name}")) for name in ("partition", "offset"))
            due = max(int(header(firing, "schedule-due")), _sent_at(commands, *source))
            id = header(firing, "schedule-id")
            if firing.topic == target and at - due > longest_ms:
                raise Violation(f"{id} was delivered {at - due} ms late, and its target had no trouble")
            if firing.topic == frail and trouble.kind == "silent" and at > max(due, back_ms) + RETURN_MS:
                raise Violation(f"{id}, due {due}, was delivered {at - back_ms} ms after its target had come back")


def check_beside_away(
    commits: Iterable[Transaction], away: Away, commands: dict[int, Log], changelog: str, target: str, epoch_ms: int
) -> None:
    """Raise Violation if anything was late that does not need a partition which takes nothing, or came late after it.

    Commands that were sent there, that were passed on to it, and those for many need it.
    """
    back_ms = epoch_ms + round(1_000 * away.ends)
    moved = {sent(record) for record in commands[away.partition].committed(0, 1 << 40)}
    for commit in commits:
        at = epoch_ms + int(commit.decided_at * 1_000)
        is_its_own = any(record.partition == away.partition for record in to(commit, changelog))
        for answer in map(json, to(commit, "replies")):
            command = answer["partition"], answer["offset"]
            ready = _sent_at(commands, *command)
            needs = is_its_own or command in moved or "count" in answer
            _check_time(f"the answer {answer}", ready, at, back_ms if needs else 0)
        for firing in to(commit, target):
            source = int(header(firing, "schedule-source-partition")), int(header(firing, "schedule-source-offset"))
            ready = max(int(header(firing, "schedule-due")), _sent_at(commands, *source))
            _check_time(header(firing, "schedule-id"), ready, at, back_ms if is_its_own or source in moved else 0)


def _check_time(what: str, ready: int, at: int, back_ms: int) -> None:
    latest = max(ready + BESIDE_AWAY_MS, back_ms + AFTER_AWAY_MS if back_ms else 0)
    if at > latest:
        raise Violation(f"{what} came {at - ready} ms after it could, {at - back_ms} ms after the partition was back")


def _sent_at(commands: dict[int, Log], partition: int, offset: int) -> int:
    return commands[partition].entries[offset][1].timestamp
