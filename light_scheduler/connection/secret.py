"""A value that shows nowhere: not in `repr`, logs, tracebacks or documents."""

from __future__ import annotations

HIDDEN = "********"


class Secret:
    """A text to keep. `reveal` it only where it is handed to a client.

    It is no dataclass: `dataclasses.asdict` and encoders of JSON would take its text out of it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other.reveal()

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN
