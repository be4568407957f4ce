"""A value that appears nowhere: not in `repr`, logs, tracebacks or documents."""

from __future__ import annotations

HIDDEN = "********"


class Secret:
    """A secret text. Call `reveal` only to pass it to a client.

    It is not a dataclass: `dataclasses.asdict` and JSON encoders would expose its text.
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
