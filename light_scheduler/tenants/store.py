"""The tenants topic as the place of all tenants' rules: reads the book of them, and changes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.compacted import ChangingEntries, CompactedTopic, followed
from light_scheduler.model.tenant_rules import (
    NO_TENANTS,
    Tenant,
    TenantRules,
    TenantState,
    check_tenant_name,
    check_tenant_rules,
)
from light_scheduler.wire.tenants import Record, StoredRules, StoredState, rules_record, state_record, tenant_book


class TenantStore:
    """Follow it while it is used. Changes are in force everywhere as soon as the other workers have read them."""

    def __init__(self, topic: ChangingEntries, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock
        self._changing = asyncio.Lock()
        self.book = NO_TENANTS

    @property
    def is_loaded(self) -> bool:
        """Whether the book is that of the topic."""
        return self._topic.is_loaded

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep the book up to date for ever; `changed` is called after each change of the topic. Raises KafkaError."""

        def read() -> None:
            book = tenant_book(self._topic.entries)
            if book.tenants != self.book.tenants:  # the topic has tokens, too
                self.book = book
            changed()

        await self._topic.follow(read)

    async def set_rules(self, name: str, change: Callable[[TenantRules], TenantRules], *, by: str) -> Tenant:
        """Change the rules of a tenant, and return it. Raises TenantRulesError, BrokerError.

        `change` is called again with the rules of somebody who changes them at the same time: neither change is lost.
        """
        check_tenant_name(name)

        def changed() -> Iterator[Record]:
            before = self.book.get(name)
            rules = change(TenantRules() if before is None else before.rules)
            check_tenant_rules(rules)
            now = self._clock.now()
            since = self.book.pending_since.get(name)
            if rules.max_pending != (None if before is None else before.rules.max_pending):
                since = now if since is None else max(now, since + 1)
            yield rules_record(name, StoredRules(rules, now, by, since))

        async with self._changing:
            self._check_loaded()
            await self._topic.change(changed)
            return self.book.tenants[name]

    async def set_state(self, name: str, state: TenantState, *, by: str) -> Tenant:
        """Pause, resume or delete a tenant, and return it. Raises TenantRulesError, BrokerError."""
        check_tenant_name(name)
        async with self._changing:
            self._check_loaded()
            await self._topic.write_all([state_record(name, StoredState(state, self._clock.now(), by))])
            return self.book.tenants[name]

    def _check_loaded(self) -> None:
        if not self.is_loaded:
            raise BrokerError("the tenants have not been read yet; try again")


@asynccontextmanager
async def opened_tenants(connection: Address, topic: str, clock: Clock, timeout_s: float) -> AsyncIterator[TenantStore]:
    """Follow a store for as long as it takes to use it. Raises BrokerError if it cannot be read in time."""
    store = TenantStore(CompactedTopic(connection, topic), clock)
    async with followed(store.follow, topic, timeout_s):
        yield store
