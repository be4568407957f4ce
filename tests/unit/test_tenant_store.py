"""Rules of a tenant that two change at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest
from msgspec.structs import replace

from light_scheduler.clock import SettableClock
from light_scheduler.errors import BrokerError
from light_scheduler.kafka import compacted
from light_scheduler.kafka.compacted import Change
from light_scheduler.model import HistoryEvent, Requester
from light_scheduler.model.tenant_rules import TenantRules, TenantRulesError, TenantState, TenantWasDeleted
from light_scheduler.tenants import TenantStore
from light_scheduler.wire import decode_history, history_key

ONE, OTHER = Requester("one", "192.0.2.1"), Requester("other", "192.0.2.2")


class ContendedTopic:
    """The tenants topic. `meanwhile` is written by somebody else while a change is made, which is then made anew."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.is_loaded = False
        self.meanwhile: dict[bytes, bytes] = {}
        self.told: list[HistoryEvent] = []
        self._changed: Callable[[], None] = lambda: None

    async def follow(self, changed: Callable[[], None]) -> None:
        self.is_loaded, self._changed = True, changed
        changed()

    async def write_all(self, records: Iterable[compacted.Record]) -> None:
        self.entries |= {key: value for key, value in records if value is not None}  # stores remove nothing
        self._changed()

    async def change(self, make: Callable[[], Change]) -> None:
        make()
        await self.write_all(self.meanwhile.items())
        entries, told = make()
        await self.write_all(entries)
        assert told is not None
        key, value = told
        self.told.append(decode_history(value))
        assert key == history_key(self.told[-1].tenant, None)


async def followed() -> tuple[TenantStore, ContendedTopic]:
    topic = ContendedTopic()
    store = TenantStore(topic, SettableClock(1_800_000_000_000))
    await store.follow(lambda: None)
    return store, topic


async def test_rules_that_two_set_at_the_same_time_are_both_in_force() -> None:
    (other, written), (store, topic) = await followed(), await followed()
    await other.set_rules("shop", partial(replace, max_pending=7), by=OTHER)
    topic.meanwhile = written.entries

    tenant = await store.set_rules("shop", partial(replace, weight=3), by=ONE)

    assert tenant.rules == TenantRules(max_pending=7, weight=3)
    assert store.book.tenants["shop"] == tenant


async def test_rules_that_only_both_together_break_are_refused() -> None:
    (other, written), (store, topic) = await followed(), await followed()
    await other.set_rules("shop", partial(replace, targets=("shop-*",)), by=OTHER)
    topic.meanwhile = written.entries
    with pytest.raises(TenantRulesError, match="default_target"):
        await store.set_rules("shop", partial(replace, default_target="mails"), by=ONE)
    assert topic.entries == written.entries


async def test_rules_that_have_not_been_read_are_not_changed() -> None:
    store = TenantStore(ContendedTopic(), SettableClock(0))
    with pytest.raises(BrokerError, match="have not been read yet"):
        await store.set_rules("shop", partial(replace, weight=3), by=ONE)


@pytest.mark.parametrize("is_read_before", [True, False], ids=["before", "meanwhile"])
async def test_rules_that_a_newer_version_wrote_are_neither_changed_nor_replaced(is_read_before: bool) -> None:
    store, topic = await followed()
    newer = {b"tenant/shop": b'{"rules":{"targets":["shop-*"],"moon_phase":"full"},"at":1,"by":"ops"}'}
    if is_read_before:
        await topic.write_all(newer.items())
    topic.meanwhile = newer
    for change in (partial(replace, weight=3), lambda _: TenantRules(weight=3)):
        with pytest.raises(TenantRulesError, match=r"^tenant: a newer version wrote rules of shop"):
            await store.set_rules("shop", change, by=ONE)
    assert (topic.entries, topic.told) == (newer, [])
    assert store.book.stopped == {"shop"}


async def test_a_tenant_whose_rules_a_newer_version_wrote_can_be_paused_and_deleted() -> None:
    store, topic = await followed()
    await topic.write_all({b"tenant/shop": b'{"rules":{"moon_phase":"full"},"at":1,"by":"ops"}'}.items())
    for state in (TenantState.PAUSED, TenantState.ACTIVE, TenantState.DELETED):
        tenant = await store.set_state("shop", state, by=ONE)
        assert (tenant.state, tenant.is_stopped) == (state, True)
    assert b"moon_phase" in topic.entries[b"tenant/shop"]


async def test_the_history_tells_what_a_change_does_to_the_rules_that_somebody_else_just_set() -> None:
    (other, written), (store, topic) = await followed(), await followed()
    await other.set_rules("shop", partial(replace, max_pending=7), by=OTHER)
    topic.meanwhile = written.entries
    await store.set_rules("shop", partial(replace, max_pending=200, firings_per_second=0.5, targets=("a", "b")), by=ONE)
    (event,) = topic.told
    assert (
        event.reason
        == "rules of tenant shop: targets none -> a,b, max_pending 7 -> 200, firings_per_second none -> 0.5"
    )
    assert (event.event, event.tenant, event.id, event.at) == ("changed", "shop", None, 1_800_000_000_000)
    assert (event.by, event.address) == ("one", "192.0.2.1")


async def test_a_pause_does_not_undo_a_deletion_that_somebody_makes_at_the_same_time() -> None:
    (other, written), (store, topic) = await followed(), await followed()
    await other.set_state("shop", TenantState.DELETED, by=OTHER)
    topic.meanwhile = written.entries
    with pytest.raises(TenantWasDeleted, match="resume it first"):
        await store.set_state("shop", TenantState.PAUSED, by=ONE)
    assert topic.entries == written.entries
    assert topic.told == []


async def test_the_history_tells_of_each_state_and_of_rules_that_stay_as_they_are() -> None:
    store, topic = await followed()
    for state in (TenantState.PAUSED, TenantState.ACTIVE, TenantState.DELETED):
        await store.set_state("shop", state, by=ONE)
    await store.set_rules("shop", lambda rules: rules, by=ONE)
    assert [event.reason for event in topic.told] == [
        "tenant shop: active -> paused",
        "tenant shop: paused -> active",
        "tenant shop: active -> deleted",
        "rules of tenant shop: set again, unchanged",
    ]
