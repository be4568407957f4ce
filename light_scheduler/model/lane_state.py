"""The states of a lane of schedules or of a delay rule, and their transitions.

created --> fenced --> restoring --> running
              ^            |            |
              |            v            v
              +--------- failed <-------+          any of them --> closing --> closed
"""

from __future__ import annotations

from enum import StrEnum

from light_scheduler.errors import IllegalTransition


class LaneState(StrEnum):
    CREATED = "created"
    FENCED = "fenced"
    RESTORING = "restoring"
    RUNNING = "running"
    FAILED = "failed"
    CLOSING = "closing"
    CLOSED = "closed"

    def to(self, target: LaneState) -> LaneState:
        """Return the target state. Raises IllegalTransition if it cannot be reached from this state."""
        if target not in _MOVES[self]:
            raise IllegalTransition(f"a lane cannot go from {self} to {target}")
        return target


_MOVES = {
    LaneState.CREATED: {LaneState.FENCED, LaneState.FAILED, LaneState.CLOSING},
    LaneState.FENCED: {LaneState.RESTORING, LaneState.FAILED, LaneState.CLOSING},
    LaneState.RESTORING: {LaneState.RUNNING, LaneState.FAILED, LaneState.CLOSING},
    LaneState.RUNNING: {LaneState.FAILED, LaneState.CLOSING},
    LaneState.FAILED: {LaneState.FENCED, LaneState.FAILED, LaneState.CLOSING},
    LaneState.CLOSING: {LaneState.CLOSED},
    LaneState.CLOSED: set(),
}
