"""The names of an application's topics."""

from __future__ import annotations

from dataclasses import dataclass


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
    def delays(self) -> str:
        return f"{self.app_id}-delays"

    @property
    def delay_positions(self) -> str:
        return f"{self.app_id}-delay-positions"

    def changelog(self, commands_topic: str) -> str:
        """Name the changelog of a commands topic: each has its own, partition by partition."""
        if commands_topic == self.commands:
            return f"{self.app_id}-schedules-changelog"
        return f"{self.app_id}-{commands_topic}-schedules-changelog"
