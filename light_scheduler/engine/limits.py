"""Limits of commands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Command, ScheduleCommand
from light_scheduler.model.tenant_rules import QUOTA

READ_AS_COMMANDS = "a commands topic of the application, which would read results as commands"


class LimitSettings(Protocol):
    """The settings that limit commands."""

    @property
    def max_payload_bytes(self) -> int: ...
    @property
    def max_id_bytes(self) -> int: ...
    @property
    def max_pending_per_partition(self) -> int: ...
    @property
    def internal_topics(self) -> frozenset[str]: ...
    @property
    def answers_only(self) -> frozenset[str]: ...
    @property
    def commands_only(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class Limits:
    """Limits of commands. Only workers write to `internal_topics`, which cannot be targets of schedules.

    `answers_only` are topics for results of commands, but not for firings. `commands_only` take no results, which would
    be read as commands. `max_pending_per_partition` only applies to new schedules; 0 means no limit.
    """

    max_payload_bytes: int
    max_id_bytes: int
    internal_topics: frozenset[str] = frozenset()
    answers_only: frozenset[str] = frozenset()
    max_pending_per_partition: int = 0
    commands_only: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: LimitSettings) -> Self:
        """Return the limits of an application."""
        return cls(
            settings.max_payload_bytes,
            settings.max_id_bytes,
            settings.internal_topics,
            settings.answers_only,
            settings.max_pending_per_partition,
            settings.commands_only,
        )

    def may_answer_to(self, topic: str) -> bool:
        """Return whether results of commands may go to a topic."""
        return topic not in self.internal_topics and topic not in self.commands_only

    def may_aim_at(self, topic: str) -> bool:
        """Return whether firings may go to a topic."""
        return topic not in self.refused

    @cached_property
    def refused(self) -> frozenset[str]:
        """The topics to which no firing may go."""
        return self.internal_topics | self.answers_only

    def check_id(self, id: str) -> None:
        """Raise InvalidCommand if an id is too long. Ids of pending schedules may be, if the limit was lowered."""
        if len(id) * 4 > self.max_id_bytes and len(id.encode()) > self.max_id_bytes:
            raise InvalidCommand("schedule-id", f"is longer than {self.max_id_bytes} bytes")

    def check(self, command: Command) -> None:
        """Raise InvalidCommand, with the field, if a command exceeds a limit. Does not check the id."""
        if command.reply_to is not None and not self.may_answer_to(topic := command.reply_to.topic):
            is_internal = topic in self.internal_topics
            why = "an internal topic: only the scheduler and Kafka write to it" if is_internal else READ_AS_COMMANDS
            raise InvalidCommand("schedule-reply-topic", f"{topic} is {why}")
        if isinstance(command, ScheduleCommand):
            if command.payload is not None and len(command.payload) > self.max_payload_bytes:
                raise InvalidCommand(
                    "payload", f"has {len(command.payload)} bytes; at most {self.max_payload_bytes} are allowed"
                )
            if not self.may_aim_at(command.target.topic):
                raise InvalidCommand(
                    "schedule-target-topic",
                    f"{command.target.topic} is an internal topic: only the scheduler and Kafka write to it",
                )

    def check_room(self, pending: int) -> None:
        """Raise InvalidCommand if a partition with `pending` schedules accepts no new one."""
        most = self.max_pending_per_partition
        if most and pending >= most:
            raise InvalidCommand(
                f"{QUOTA}max_pending_per_partition",
                f"the partition may have {most} pending schedules (max_pending_per_partition), and has reached that: "
                "cancel some, or wait until some have fired",
            )


NO_LIMITS = Limits(max_payload_bytes=1 << 62, max_id_bytes=1 << 62)
"""For calculations that do not store a schedule."""
