"""Messages with which partitions lend each other tokens of a rate, so that a rate is fully used for any keys."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from .place import Place

ALL = ""
"""Stands for all tenants together."""


class RateKind(StrEnum):
    """COMMANDS: `commands_per_second`. FIRINGS: `firings_per_second` and the caps in the settings."""

    COMMANDS = "commands"
    FIRINGS = "firings"


class RateName(NamedTuple):
    """The rate of a tenant, or of ALL."""

    kind: RateKind
    tenant: str


class RatePart(NamedTuple):
    """A partition earns a `share` of each rate, 0 to 1. A new partition has no saved tokens."""

    share: float = 1.0
    is_new: bool = False


class RateAsk(NamedTuple):
    """A partition without tokens asks another one for at most `wanted` thousandths of a token.

    `number` identifies the ask.
    """

    name: RateName
    partition: int
    number: int
    wanted: int


class RateGrant(NamedTuple):
    """The answer of a partition: it gives away `amount` thousandths of its own tokens, 0 or more."""

    name: RateName
    partition: int
    number: int
    amount: int


class RateMessage(NamedTuple):
    """A message between lanes that share no log. `topic` is the commands topic of the sender."""

    topic: str
    said: RateAsk | RateGrant

    @property
    def sender(self) -> Place:
        """The commands topic and partition of the sender."""
        return self.topic, self.said.partition
