"""Rules of a tenant that two change at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import pytest
from msgspec.structs import replace

from light_scheduler.clock import SettableClock
from light_scheduler.errors import BrokerError
from light_scheduler.model.tenant_rules import TenantRules, TenantRulesError
from light_scheduler.tenants import TenantStore

Make = Callable[[], Iterable[tuple[bytes, bytes]]]


class ContendedTopic:
    """The tenants topic. `meanwhile` is written by somebody else while a change is made, which is then made anew."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        self.is_loaded = False
        self.meanwhile: dict[bytes, bytes] = {}
        self._changed: Callable[[], None] = lambda: None

    async def follow(self, changed: Callable[[], None]) -> None:
        self.is_loaded, self._changed = True, changed
        changed()

    async def write_all(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        self.entries |= dict(records)
        self._changed()

    async def change(self, make: Make) -> None:
        list(make())
        await self.write_all(self.meanwhile.items())
        await self.write_all(make())


async def followed() -> tuple[TenantStore, ContendedTopic]:
    topic = ContendedTopic()
    store = TenantStore(topic, SettableClock(1_800_000_000_000))
    await store.follow(lambda: None)
    return store, topic


async def test_rules_that_two_set_at_the_same_time_are_both_in_force() -> None:
    (other, written), (store, topic) = await followed(), await followed()
    await other.set_rules("shop", partial(replace, max_pending=7), by="other")
    topic.meanwhile = written.entries

    tenant = await store.set_rules("shop", partial(replace, weight=3), by="one")

    assert tenant.rules == TenantRules(max_pending=7, weight=3)
    assert store.book.tenants["shop"] == tenant


async def test_rules_that_only_both_together_break_are_refused() -> None:
    (other, written), (store, topic) = await followed(), await followed()
    await other.set_rules("shop", partial(replace, targets=("shop-*",)), by="other")
    topic.meanwhile = written.entries
    with pytest.raises(TenantRulesError, match="default_target"):
        await store.set_rules("shop", partial(replace, default_target="mails"), by="one")
    assert topic.entries == written.entries


async def test_rules_that_have_not_been_read_are_not_changed() -> None:
    store = TenantStore(ContendedTopic(), SettableClock(0))
    with pytest.raises(BrokerError, match="have not been read yet"):
        await store.set_rules("shop", partial(replace, weight=3), by="one")
