"""The names of an application's topics."""

from __future__ import annotations

from dataclasses import dataclass

CHANGELOG_LAG_MS = 60_000
"""How old a record of a changelog is before compaction removes others for it."""


def karafka_states_topic(commands_topic: str) -> str:
    """Name the topic in which Karafka's Web UI finds how far the scheduler of a commands topic is."""
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
        """The consumer group that shares out the sources of delay rules; no application id has a slash in it."""
        return f"{self.app_id}-delays/sources"

    @property
    def delay_positions(self) -> str:
        return f"{self.app_id}-delay-positions"

    @property
    def redrives(self) -> str:
        """Begin the transactional ids under which workers send dead letters again."""
        return f"{self.app_id}-redrive/"

    @property
    def loads(self) -> str:
        return f"{self.app_id}-loads"

    def changelog(self, commands_topic: str) -> str:
        """Name the changelog of a commands topic: each has its own, partition by partition.

        Where two names meet, the length of the first tells where it ends: `a-b` with `c` is not `a` with `b-c`.
        """
        if commands_topic == self.commands:
            return f"{self.app_id}-schedules-changelog"
        return f"{self.app_id}-{commands_topic}-schedules-changelog-{len(self.app_id)}"

    def transactional_id(self, commands_topic: str, partition: int) -> str:
        """Name the owner of a partition of a commands topic; no topic has a slash in its name."""
        if commands_topic == self.commands:
            return f"{self.app_id}-{commands_topic}-{partition}"
        return f"{self.app_id}-lanes/{commands_topic}/{partition}"
