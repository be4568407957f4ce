"""Since when commands wait that later cycles read, for each tenant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.partition import AT, command

from light_scheduler.lanes.input.incoming import Incoming
from light_scheduler.lanes.input.intake import MAX_WAITING_BATCHES, Intake
from light_scheduler.lanes.quotas.unread import MOST_LOOKED_AT, Unread
from light_scheduler.wire import CommandRecord, Envelope
from light_scheduler.wire.native import NativeDialect


def ignore() -> None:
    pass


def sent(tenant: str, offset: int, *, id: bytes | None = b"id") -> Any:
    return command(("schedule-tenant", tenant.encode()), key=id, offset=offset, timestamp=AT + offset)


class Looking(NativeDialect):
    """Notes at which commands it looks."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at: list[int] = []

    def salvage(self, record: CommandRecord) -> Envelope:
        self.looked_at.append(record.offset)
        return super().salvage(record)


class Lane:
    """What waits for a lane."""

    def __init__(self, *batches: list[Any], is_held: bool = True, backlog_end: int = 0) -> None:
        self.intake = Intake(ignore, ignore)
        self.intake.open(0, backlog_end)
        for batch in batches:
            self.arrive(*batch)
        readable: Any = SimpleNamespace(is_held=is_held)
        position: Any = None
        self.dialect = Looking()
        self.unread = Unread(Incoming(self.intake, readable, position), self.dialect)

    def arrive(self, *batch: Any) -> None:
        self.intake.offer(self.intake.epoch, batch[0].offset, list(batch))

    def since(self, *tenants: str) -> list[int | None]:
        return [self.unread.since(tenant) for tenant in tenants]


def unread(*batches: list[Any], is_held: bool = True, backlog_end: int = 0) -> Unread:
    return Lane(*batches, is_held=is_held, backlog_end=backlog_end).unread


def test_nobody_waits_where_there_is_nothing() -> None:
    assert unread().since("a") is None


def test_commands_of_a_tenant_wait_since_its_first_and_those_of_others_do_not() -> None:
    found = unread([sent("a", 0), sent("b", 1)], [sent("a", 2)])
    assert [found.since(tenant) for tenant in "abc"] == [AT, AT + 1, None]


def test_all_wait_since_the_first_if_the_next_cycle_reads_it() -> None:
    found = unread([sent("a", 0), sent("b", 1)], is_held=False)
    assert [found.since(tenant) for tenant in "abc"] == [AT, AT, AT]


def test_a_command_whose_tenant_is_not_known_may_be_any_tenants() -> None:
    found = unread([sent("a", 0), sent("b", 1, id=None), sent("c", 2)])
    assert [found.since(tenant) for tenant in "abc"] == [AT, AT + 1, AT + 1]


@pytest.mark.parametrize("more", ["backlog", "full", "many"])
def test_what_has_not_arrived_or_was_not_looked_at_may_be_any_tenants(more: str) -> None:
    if more == "backlog":
        found = unread([sent("a", 0), sent("a", 1)], backlog_end=3)
        assert found.since("b") == AT + 1
    elif more == "full":
        found = unread(*([sent("a", offset)] for offset in range(MAX_WAITING_BATCHES)))
        assert found.since("b") == AT + MAX_WAITING_BATCHES - 1
    else:
        found = unread([sent("a", offset) for offset in range(MOST_LOOKED_AT + 5)])
        assert found.since("b") == AT + MOST_LOOKED_AT
    assert found.since("a") == AT


def test_commands_that_wait_are_looked_at_once_however_often_it_is_asked_while_they_do() -> None:
    lane = Lane([sent("a", 0), sent("b", 1)])
    assert lane.since("a", "b", "c") == [AT, AT + 1, None]
    lane.arrive(sent("a", 2), sent("c", 3))
    assert lane.since("a", "b", "c", "d") == [AT, AT + 1, AT + 3, None]
    assert lane.dialect.looked_at == [0, 1, 2, 3]


def test_no_more_are_looked_at_however_many_arrive() -> None:
    lane = Lane([sent("a", offset) for offset in range(MOST_LOOKED_AT)])
    assert lane.since("a", "b") == [AT, None]
    for offset in range(MOST_LOOKED_AT, MOST_LOOKED_AT + 3):
        lane.arrive(sent("b", offset))
        assert lane.since("a", "b") == [AT, AT + MOST_LOOKED_AT]
    assert len(lane.dialect.looked_at) == MOST_LOOKED_AT


@pytest.mark.parametrize("opened_again", [False, True])
def test_what_was_taken_or_dropped_does_not_count(opened_again: bool) -> None:
    lane = Lane([sent("a", 0), sent("b", 1, id=None)], [sent("c", 2)])
    assert lane.since("a", "b", "c") == [AT, AT + 1, AT + 1]
    if opened_again:
        lane.intake.open(0, 0)
        lane.arrive(sent("d", 0))
        assert lane.since("a", "c", "d") == [None, None, AT]
    else:
        lane.intake.take(2)
        assert lane.since("a", "b", "c") == [None, None, AT + 2]
