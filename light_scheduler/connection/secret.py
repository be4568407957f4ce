"""A value that shows nowhere: not in `repr`, logs, tracebacks or documents."""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = "********"


@dataclass(frozen=True, repr=False)
class Secret:
    """A text to keep. `reveal` it only where it is handed to a client."""

    _value: str

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN
