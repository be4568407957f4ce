"""Tokens of a rate that partitions lend to each other, so that a rate is used up whatever the keys are."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from .place import Place

ALL = ""
"""In place of a tenant: all together."""


class RateKind(StrEnum):
    """Which rate: `commands_per_second`, or `firings_per_second` and the caps of the settings."""

    COMMANDS = "commands"
    FIRINGS = "firings"


class RateName(NamedTuple):
    """The rate of a tenant, or of ALL."""

    kind: RateKind
    tenant: str


class RatePart(NamedTuple):
    """A partition earns a `share` of each rate, 0 to 1. One that `is_new` has nothing saved up."""

    share: float = 1.0
    is_new: bool = False


class RateAsk(NamedTuple):
    """A partition that has to hold back asks another one for at most so many thousandths of a token.

    `number` tells its asks apart.
    """

    name: RateName
    partition: int
    number: int
    wanted: int


class RateGrant(NamedTuple):
    """The answer of a partition: so many thousandths of a token are taken from its own, 0 or more."""

    name: RateName
    partition: int
    number: int
    amount: int


class RateMessage(NamedTuple):
    """What a lane says to one that it does not share a log with; `topic` is the commands topic of who says it."""

    topic: str
    said: RateAsk | RateGrant

    @property
    def sender(self) -> Place:
        """The commands topic and partition of who says it."""
        return self.topic, self.said.partition
