"""The state of the probes of one partition.

A probe is a schedule that the worker sends to the commands topic. Its firing goes to the same partition, where the
lane reads it. So a probe that is back has been through the whole path of a command and its firing.

    idle --begin--> sent --the schedule is stored--> stored --the firing is read--> idle
                     |                                 |
                     +---- not back in time: failed ---+

Only the current probe counts. Others, from an earlier owner or from before a timeout, are executed or ignored without a
trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from secrets import token_hex
from typing import NamedTuple

import msgspec

from .status import ProbeStatus

HOLD_MS = 500
"""How long after sending a probe is due. It is stored meanwhile, and found when due, like other schedules."""

TIMEOUT_MS = 30_000
"""A probe that is not back after this time has failed."""

NOT_STORED = f"no transaction stored the probe within {TIMEOUT_MS // 1_000} s"
NOT_FIRED = f"the firing of the probe was not read within {TIMEOUT_MS // 1_000} s"


class _UnderWay(NamedTuple):
    """A probe that is not back. Instants are UTC epoch ms."""

    number: str
    sent_at: int
    due: int
    stored_at: int | None = None


def _new_number() -> str:
    return token_hex(16)


class LaneProbe:
    """The probes of one partition, for as long as this worker owns it."""

    def __init__(self, new_number: Callable[[], str] = _new_number) -> None:
        self._new_number = new_number
        self._under_way: _UnderWay | None = None
        self._status: ProbeStatus | None = None

    @property
    def status(self) -> ProbeStatus | None:
        """The results of the probes so far, or None if none was sent."""
        return self._status

    @property
    def is_under_way(self) -> bool:
        """Whether a probe was sent and is not back."""
        return self._under_way is not None

    def begin(self, now: int) -> str | None:
        """Return the number of the probe to send at an instant (UTC epoch ms), or None if one is under way."""
        self.give_up_late(now)
        if self.is_under_way:
            return None
        number = self._new_number()
        self._under_way, self._status = _UnderWay(number, now, _due_of(now)), self._status or ProbeStatus()
        return number

    def give_up_late(self, now: int) -> None:
        """Note that the current probe has failed, if it is not back in time."""
        if (probe := self._under_way) is not None and now - probe.sent_at >= TIMEOUT_MS:
            reason = NOT_STORED if probe.stored_at is None else NOT_FIRED
            self._status, self._under_way = _failed(self._status or ProbeStatus(), now, reason), None

    def not_sent(self, number: str, now: int, reason: str) -> None:
        """Note that a probe could not be written to the commands topic."""
        if self._under_way is not None and self._under_way.number == number:
            self._status, self._under_way = _failed(self._status or ProbeStatus(), now, reason), None

    def due_of(self, number: str) -> int | None:
        """Return when (UTC epoch ms) the probe with a number is due, or None if it is not the current one."""
        probe = self._under_way
        return probe.due if probe is not None and probe.number == number else None

    def stored(self, numbers: Iterable[str], now: int) -> None:
        """Note the probes stored by a transaction that was committed at an instant (UTC epoch ms)."""
        if self._under_way is not None and self._under_way.number in numbers:
            self._under_way = self._under_way._replace(stored_at=now)

    def read(self, number: str, now: int) -> None:
        """Note that the firing of a probe was read at an instant (UTC epoch ms)."""
        probe, status = self._under_way, self._status or ProbeStatus()
        if probe is None or probe.number != number:
            return
        stored_at = probe.stored_at or probe.sent_at  # the answer to that commit may be lost
        took = max(0, stored_at - probe.sent_at) + max(0, now - max(probe.due, stored_at))
        self._under_way = None
        self._status = msgspec.structs.replace(
            status, successes=status.successes + 1, last_success=now, latency_ms=took
        )


def _due_of(sent_at: int) -> int:
    """Return when a probe is due. Never at a full second, for which lanes prepare transactions ahead of time."""
    due = sent_at + HOLD_MS
    return due if due % 1_000 else due + 1


def _failed(status: ProbeStatus, now: int, reason: str) -> ProbeStatus:
    return msgspec.structs.replace(status, failures=status.failures + 1, last_failure=now, reason=reason)
