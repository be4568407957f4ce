"""The commands of one cycle, as a lane would take them from its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Arriving:
    """Commands that one cycle takes, however many they are. If it `is_behind`, they are part of a backlog."""

    commands: list[Any]
    is_behind: bool = False
    is_held: bool = False

    def take(self, most: int) -> list[Any]:
        return self.commands
