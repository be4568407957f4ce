"""Commands that wait for a partition of the commands topic are not ignored, and explain what follows its return."""

from __future__ import annotations

import pytest
from support.ledger import Ledger

from light_scheduler.model import EventType
from light_scheduler.pipeline.audit.faults import FaultKind
from light_scheduler.wire import decode_history

from .conftest import judged, judged_in_parts

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, HOUR = 1_000, 3_600_000
AWAY = 1


@pytest.fixture
def ledger() -> Ledger:
    """An application with two partitions, one of which takes nothing."""
    ledger = Ledger(partitions=2)
    ledger.away = frozenset({AWAY})
    return ledger


def stray(ledger: Ledger) -> str:
    """Return a key that belongs to the partition that takes nothing."""
    return next(key for key in map(str, range(100)) if ledger.lane_of(key) == AWAY)


def events(ledger: Ledger) -> list[EventType]:
    return [decode_history(record.value).event for record in ledger.of(ledger.names.history)]


def test_a_command_that_waits_for_its_partition_is_not_ignored(ledger: Ledger) -> None:
    key = stray(ledger)
    ledger.send(key, M, ("at", M + HOUR), partition=0)
    ledger.send(key, M, ("command", "cancel"), partition=0)
    ledger.send(key, M, ("at", M + 2 * HOUR), partition=0)
    ledger.run(M)
    assert events(ledger) == [EventType.MOVED] * 3
    assert judged_in_parts(ledger, [M + SECOND]) == []
    assert not [verdict.faults for verdict in judged(ledger, end=M + SECOND).values() if verdict.faults]

    ledger.away = frozenset()
    ledger.run(M + 5 * SECOND)
    ledger.run_until(M + 3 * HOUR)
    expected = [EventType.SCHEDULED, EventType.CANCELLED, EventType.SCHEDULED, EventType.FIRED]
    assert events(ledger)[3:] == expected
    assert judged_in_parts(ledger, [M + SECOND, M + 3 * HOUR]) == []
    assert not [verdict.faults for verdict in judged(ledger, end=M + 3 * HOUR).values() if verdict.faults]


def test_a_command_that_was_passed_on_and_is_in_no_partition_is_ignored(ledger: Ledger) -> None:
    ledger.away = frozenset()
    key = stray(ledger)
    ledger.send(key, M, ("at", M + HOUR), partition=0)
    ledger.run(M)
    ledger.records[ledger.names.commands, AWAY].clear()
    faults = [fault for verdict in judged(ledger, end=M + SECOND).values() for fault in verdict.faults]
    assert FaultKind.IGNORED in {fault.kind for fault in faults}


def test_a_command_that_became_too_large_while_it_waited_is_rejected_and_not_ignored(ledger: Ledger) -> None:
    key = stray(ledger)
    ledger.send(key, M, ("at", M + HOUR), value=b"n" * 2_000, partition=0)
    ledger.send(key, M, ("at", M + 2 * HOUR), partition=0)
    ledger.run(M)
    ledger.away, ledger.most_bytes = frozenset(), 1_000
    ledger.run(M + 5 * SECOND)
    ledger.run_until(M + 3 * HOUR)
    assert events(ledger) == [
        *(EventType.MOVED, EventType.MOVED, EventType.REJECTED),
        *(EventType.SCHEDULED, EventType.FIRED),
    ]
    assert judged_in_parts(ledger, [M + SECOND, M + 3 * HOUR]) == []
    assert not [verdict.faults for verdict in judged(ledger, end=M + 3 * HOUR).values() if verdict.faults]
