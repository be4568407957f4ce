"""One schedule's life in the engine alone: commands and ticks at instants in, deliveries and history out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from light_scheduler.engine import Decision, FiringRules, Limits, Turn, decide, take_turn
from light_scheduler.model import (
    Acknowledgement,
    Bounds,
    Command,
    CompleteCommand,
    ControlCommand,
    ControlName,
    Entry,
    EventType,
    ExtendCommand,
    Outcome,
    RescheduleCommand,
    ScheduleCommand,
    Target,
    Timing,
)

MIDNIGHT = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

LIMITS = Limits(max_payload_bytes=1_000_000, max_id_bytes=512)
SOURCE: dict[str, Any] = {"tenant": "acme", "id": "a", "key": b"a", "partition": 0, "offset": 7}


class Told(NamedTuple):
    """A line of history."""

    event: EventType
    due: int
    sequence: int
    attempt: int
    stands_for: int = 1


class Delivered(NamedTuple):
    """A message."""

    at: int
    due: int
    sequence: int
    attempt: int


class Life:
    """`refuse` says why the target refuses a firing (due, attempt), if it does."""

    def __init__(self, rules: FiringRules | None = None, **source: Any) -> None:
        self.rules = rules or FiringRules()
        self.entry: Entry | None = None
        self.delivered: list[Delivered] = []
        self.told: list[Told] = []
        self.dead: list[tuple[str, int]] = []
        self.finished: str | None = None
        """Why the series has ended."""
        self.refuse: Callable[[int, int], str | None] = lambda due, attempt: None
        self._source = {**SOURCE, **source}

    # -- commands -----------------------------------------------------------------------------------------------------

    def schedule(
        self, timing: Timing, at: int = MIDNIGHT, *, recorded_at: int | None = None, **fields: Any
    ) -> Decision:
        """Send a schedule command; names of `Bounds` and `Acknowledgement` may stand among the fields."""
        bounds = {name: fields.pop(name) for name in Bounds.__struct_fields__ if name in fields}
        waits = {name: fields.pop(name) for name in Acknowledgement.__struct_fields__ if name in fields}
        return self.send(
            ScheduleCommand(
                **self._source,
                timing=timing,
                target=Target("t"),
                payload=b"x",
                headers=[],
                recorded_at=at if recorded_at is None else recorded_at,
                bounds=Bounds(**bounds) if bounds else None,
                acknowledgement=Acknowledgement(**{"max_attempts": 10, **waits}) if waits else None,
                **fields,
            ),
            at,
        )

    def control(self, name: ControlName, at: int) -> Decision:
        return self.send(ControlCommand(name, **self._source, recorded_at=at), at)

    def reschedule(
        self, timing: Timing, at: int, *, recorded_at: int | None = None, on_past: int | None = None, **bounds: Any
    ) -> Decision:
        command = RescheduleCommand(
            **self._source,
            timing=timing,
            recorded_at=at if recorded_at is None else recorded_at,
            on_past=on_past,
            bounds=Bounds(**bounds) if bounds else None,
        )
        return self.send(command, at)

    def extend(
        self, firing_due: int, at: int, attempt: int = 1, *, timeout: int | None = None, recorded_at: int | None = None
    ) -> Decision:
        command = ExtendCommand(
            **self._source,
            firing_due=firing_due,
            attempt=attempt,
            timeout=timeout,
            recorded_at=at if recorded_at is None else recorded_at,
        )
        return self.send(command, at)

    def complete(
        self, firing_due: int, at: int, attempt: int = 1, *, succeeded: bool = True, recorded_at: int | None = None
    ) -> Outcome:
        command = CompleteCommand(
            **self._source,
            firing_due=firing_due,
            attempt=attempt,
            succeeded=succeeded,
            recorded_at=at if recorded_at is None else recorded_at,
        )
        return self.send(command, at).outcome

    def send(self, command: Command, at: int) -> Decision:
        decision = decide(command, self.entry, at, LIMITS)
        if decision.event is not None:
            if decision.skipped is not None and self.entry is not None:
                skipped = Entry(self.entry.schedule, decision.skipped.progress)
                self._tell(EventType.SKIPPED, skipped, decision.skipped.count)
            self.entry = decision.entry
            if decision.subject is not None:
                self._tell(decision.event, decision.subject)
                if decision.finished is not None:
                    self._tell(EventType.FINISHED, decision.subject)
                    self.finished = decision.finished
        else:
            assert decision.entry == self.entry
        return decision

    # -- ticks --------------------------------------------------------------------------------------------------------

    def turn(self, now: int) -> Turn:
        """Take one turn."""
        assert self.entry is not None
        turn = take_turn(self.entry, now, self.rules)
        if turn.delivers:
            progress = turn.subject.progress
            refusal = self.refuse(progress.due, progress.attempt)
            if refusal is not None:
                turn = take_turn(self.entry, now, self.rules, refusal)
                assert not turn.delivers
        if turn.delivers:
            self.delivered.append(Delivered(now, progress.due, progress.sequence, progress.attempt))
        for skipped in turn.skipped:
            self._tell(EventType.SKIPPED, Entry(turn.subject.schedule, skipped.progress), skipped.count)
        if turn.event is not None:
            self._tell(turn.event, turn.subject)
        if turn.finished is not None:
            self._tell(EventType.FINISHED, turn.subject)
            self.finished = turn.finished
        if turn.dead_letter is not None:
            self.dead.append((turn.dead_letter.value, turn.subject.progress.due))
        self.entry = turn.entry
        return turn

    def tick(self, now: int) -> None:
        """Take turns until the schedule wakes later than now."""
        turns = 0
        while self.entry is not None and self.entry.progress.wakes_at <= now:
            self.turn(now)
            turns += 1
            assert turns < 100_000, "it wakes at once for ever"

    def run(self, until: int) -> None:
        """Tick whenever the schedule wakes, up to and at an instant."""
        while self.entry is not None and self.entry.progress.wakes_at <= until:
            self.tick(self.entry.progress.wakes_at)

    # -- what came of it ----------------------------------------------------------------------------------------------

    @property
    def dues(self) -> list[int]:
        return [firing.due for firing in self.delivered]

    @property
    def events(self) -> list[str]:
        return [line.event.value for line in self.told]

    def _tell(self, event: EventType, entry: Entry, count: int = 1) -> None:
        progress = entry.progress
        self.told.append(Told(event, progress.due, progress.sequence, progress.attempt, count))
