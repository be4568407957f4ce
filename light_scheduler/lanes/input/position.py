"""Where a lane reads commands from: the position in its state, unless the topic was truncated or recreated."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from aiokafka import TopicPartition

from light_scheduler.errors import BrokerError, InputInDoubt, StateForeign
from light_scheduler.tables import Checkpoint
from light_scheduler.wire.state import CommandsLog

SETTLE_S = 10.0
"""How long a log must end too early until it counts as truncated. A new leader may show an older end at first."""

log = logging.getLogger(__name__)


class Start(NamedTuple):
    """Where to continue reading. `problem` says why that is not where reading stopped, or is None if it is.

    `expired` is the number of offsets deleted before they were read. `is_cut` says that the log ends before the last
    position, and `is_another_log` that the position was in an earlier topic of this name.
    """

    offset: int
    expired: int = 0
    problem: str | None = None
    is_cut: bool = False
    is_another_log: bool = False


def where_to_read(position: int, known: CommandsLog | None, current: CommandsLog, begin: int, end: int) -> Start:
    """Decide where to continue reading in a log of commands with offsets from `begin` to `end`.

    `known` is the log that the position was in, as far as that is known. No command is ever executed twice: if a log
    was truncated, its remaining commands are not read again, while the log of a new topic is read completely.
    """
    if known is not None and known.topic_id and current.topic_id and known.topic_id != current.topic_id:
        return Start(
            begin,
            problem=f"topic {current.topic} was deleted and created again: its commands are read from offset {begin}, "
            f"and those of the old topic from offset {position} on are lost if there were any",
            is_another_log=True,
        )
    if begin > position:
        return Start(
            begin,
            begin - position,
            f"commands at offsets {position} to {begin - 1} were deleted before they were read: keep commands for "
            "longer than every worker may be down (retention.ms, retention.bytes)",
        )
    if end < position:
        return Start(
            end,
            problem=f"the log of commands ends at offset {end}, and commands up to {position} had been read: it was "
            f"cut short, as by an unclean leader election. Reading goes on at {end}; a command that was written "
            "after the cut and before now may be lost",
            is_cut=True,
        )
    return Start(position)


def foreign_owner(known: CommandsLog | None, current: CommandsLog) -> str | None:
    """Return a description of the state's owner if that is another application, or None."""
    if known is None or known.owner == current.owner:
        return None
    return f"application {known.app_id} with the commands topic {known.topic}"


class InputPosition:
    """Decides where a lane reads, and counts how often that was not where it had stopped.

    `expired` is the number of offsets that were deleted unread, and `problem` the last problem. `has_jumped` until the
    new position is in the changelog, and until then also `is_in_another_log` if the topic was created again. A lane
    that starts again until then calls `place` with the stored checkpoint: the position may be in the changelog by then.
    """

    def __init__(self, tp: TopicPartition, app_id: str, changelog: str, monotonic: Callable[[], float]) -> None:
        self._tp = tp
        self._app_id = app_id
        self._changelog = changelog
        self._monotonic = monotonic
        self._cut_since: float | None = None
        self.jumps = self.expired = 0
        self.problem: str | None = None
        self.has_jumped = self.is_in_another_log = False

    def place(self, checkpoint: Checkpoint, topic_id: str, begin: int, end: int) -> Checkpoint:
        """Return a checkpoint with the offset to read commands from, in a log with offsets from `begin` to `end`.

        `topic_id` is that of the commands topic, or empty if unknown. Raises StateForeign if the state belongs to
        another application or topic, and BrokerError if it is too early to say that the log was truncated.
        """
        known = checkpoint.commands_log
        current = CommandsLog(topic_id, self._app_id, self._tp.topic, 0 if known is None else known.number)
        if (owner := foreign_owner(known, current)) is not None:
            raise StateForeign(
                f"topic {self._changelog} holds the state of {owner}, so application {self._app_id} cannot keep that "
                f"of {self._tp.topic} there: choose another app_id or commands topic"
            )
        start = where_to_read(checkpoint.position, known, current, begin, end)
        self._await_cut(start)
        if start.problem is not None:
            log.error("lane %s-%d: %s", *self._tp, start.problem)
            self.jumps += 1
            self.expired += start.expired
            self.problem, self.has_jumped = start.problem, True
        self.is_in_another_log = start.is_another_log
        if start.is_another_log or start.is_cut:  # offsets begin anew, or are given out twice
            current = current._replace(number=current.number + 1)
        return msgspec.structs.replace(checkpoint, position=start.offset, commands_log=current)

    def is_stored(self) -> None:
        """Note that the position is in the changelog."""
        self.has_jumped = self.is_in_another_log = False

    def check(self, known: CommandsLog | None, topic_id: str) -> None:
        """Raise InputInDoubt if the commands topic was recreated, so is not the one to read commands from."""
        if known is not None and known.topic_id and topic_id and known.topic_id != topic_id:
            raise InputInDoubt(f"topic {self._tp.topic} was deleted and created again")

    def _await_cut(self, start: Start) -> None:
        if not start.is_cut:
            self._cut_since = None
            return
        now = self._monotonic()
        if self._cut_since is None:
            self._cut_since = now
        if now - self._cut_since < SETTLE_S:
            raise BrokerError(f"waiting for the rest of the log: {start.problem}")
        self._cut_since = None
