"""The names of an application's topics."""

from __future__ import annotations

from dataclasses import dataclass

CHANGELOG_LAG_MS = 60_000
"""Minimum age (ms) of a changelog record before compaction removes older records for it."""


def karafka_states_topic(commands_topic: str) -> str:
    """Return the name of the topic in which Karafka's Web UI finds the state of a commands topic's scheduler."""
    return f"{commands_topic}_states"


@dataclass(frozen=True)
class TopicNames:
    """The topics of one application; `app_id` is their prefix."""

    app_id: str

    @property
    def commands(self) -> str:
        return f"{self.app_id}-commands"

    @property
    def history(self) -> str:
        return f"{self.app_id}-history"

    @property
    def results(self) -> str:
        return f"{self.app_id}-results"

    @property
    def dead_letters(self) -> str:
        return f"{self.app_id}-dead-letters"

    @property
    def forecast(self) -> str:
        return f"{self.app_id}-forecast"

    @property
    def tenants(self) -> str:
        return f"{self.app_id}-tenants"

    @property
    def idempotency(self) -> str:
        return f"{self.app_id}-idempotency"

    @property
    def delays(self) -> str:
        return f"{self.app_id}-delays"

    @property
    def delay_group(self) -> str:
        """The consumer group that distributes the sources of delay rules. Application ids contain no slash."""
        return f"{self.app_id}-delays/sources"

    @property
    def delay_positions(self) -> str:
        return f"{self.app_id}-delay-positions"

    @property
    def redrives(self) -> str:
        """Prefix of the transactional ids with which workers resend dead letters."""
        return f"{self.app_id}-redrive/"

    @property
    def loads(self) -> str:
        return f"{self.app_id}-loads"

    def changelog(self, commands_topic: str) -> str:
        """Return the name of the changelog of a commands topic. Both have the same partitions.

        The length of the application id at the end makes names unique: `a-b` with `c` differs from `a` with `b-c`.
        """
        if commands_topic == self.commands:
            return f"{self.app_id}-schedules-changelog"
        return f"{self.app_id}-{commands_topic}-schedules-changelog-{len(self.app_id)}"

    def transactional_id(self, commands_topic: str, partition: int) -> str:
        """Return the transactional id for a partition of a commands topic. Topic names contain no slash."""
        if commands_topic == self.commands:
            return f"{self.app_id}-{commands_topic}-{partition}"
        return f"{self.app_id}-lanes/{commands_topic}/{partition}"
