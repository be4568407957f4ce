"""Since when commands wait that later cycles read, for each tenant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.partition import AT, command

from light_scheduler.lanes.incoming import Incoming
from light_scheduler.lanes.intake import MAX_WAITING_BATCHES, Intake
from light_scheduler.lanes.unread import MOST_LOOKED_AT, Unread
from light_scheduler.wire.native import NativeDialect


def ignore() -> None:
    pass


def sent(tenant: str, offset: int, *, id: bytes | None = b"id") -> Any:
    return command(("schedule-tenant", tenant.encode()), key=id, offset=offset, timestamp=AT + offset)


def unread(*batches: list[Any], is_held: bool = True, backlog_end: int = 0) -> Unread:
    intake = Intake(ignore, ignore)
    intake.open(0, backlog_end)
    for batch in batches:
        intake.offer(intake.epoch, batch[0].offset, batch)
    readable: Any = SimpleNamespace(is_held=is_held)
    position: Any = None
    return Unread(Incoming(intake, readable, position), NativeDialect())


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
