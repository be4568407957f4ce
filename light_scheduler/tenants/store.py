"""Reads and changes the rules of all tenants, which are stored in the tenants topic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.compacted import Change, ChangingEntries, CompactedTopic, followed
from light_scheduler.model import Requester
from light_scheduler.model.tenant_rules import (
    NO_TENANTS,
    Tenant,
    TenantRules,
    TenantRulesError,
    TenantState,
    TenantWasDeleted,
    check_tenant_name,
    check_tenant_rules,
)
from light_scheduler.model.topics import TopicNames
from light_scheduler.wire import change_record
from light_scheduler.wire.tenant_changes import state_change
from light_scheduler.wire.tenants import StoredRules, StoredState, rules_record, state_record, tenant_book

from .changes import rules_change


class TenantStore:
    """The rules of all tenants. `follow` must run while it is used.

    A change applies in other workers as soon as they have read it. Each change is recorded in the history with the
    requester (`by`), in the same transaction.
    """

    def __init__(self, topic: ChangingEntries, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock
        self._changing = asyncio.Lock()
        self.book = NO_TENANTS

    @property
    def is_loaded(self) -> bool:
        """Whether the book was read from the topic."""
        return self._topic.is_loaded

    async def follow(self, changed: Callable[[], None]) -> None:
        """Keep the book up to date until cancelled. Calls `changed` after each topic change. Raises KafkaError."""

        def read() -> None:
            book = tenant_book(self._topic.entries)
            if book.tenants != self.book.tenants:  # the topic also has tokens
                self.book = book
            changed()

        await self._topic.follow(read)

    async def set_rules(self, name: str, change: Callable[[TenantRules], TenantRules], *, by: Requester) -> Tenant:
        """Change the rules of a tenant and return the tenant. Raises TenantRulesError, BrokerError.

        After a concurrent change, `change` is called again with the new rules, so that no change is lost. Refuses to
        change rules that a newer version wrote.
        """
        check_tenant_name(name)

        def changed() -> Change:
            before = self._rules_before(name)
            rules = change(before)
            check_tenant_rules(rules)
            now = self._clock.now()
            since = self.book.pending_since.get(name)
            if rules.max_pending != before.max_pending:
                since = now if since is None else max(now, since + 1)
            event = change_record(name, rules_change(name, before, rules), by, now)
            return Change([rules_record(name, StoredRules(rules, now, by.by, since))], event)

        return await self._change(name, changed)

    async def set_state(self, name: str, state: TenantState, *, by: Requester) -> Tenant:
        """Pause, resume or delete a tenant and return it. Raises TenantRulesError, BrokerError.

        Raises TenantWasDeleted for a pause that would undo a deletion.
        """
        check_tenant_name(name)

        def changed() -> Change:
            now, before = self._clock.now(), self._before(name).state
            if (before, state) == (TenantState.DELETED, TenantState.PAUSED):
                raise TenantWasDeleted("tenant", f"{name} was deleted, and a pause would undo that: resume it first")
            event = change_record(name, state_change(name, before, state), by, now)
            return Change([state_record(name, StoredState(state, now, by.by))], event)

        return await self._change(name, changed)

    async def _change(self, name: str, changed: Callable[[], Change]) -> Tenant:
        async with self._changing:
            self._check_loaded()
            await self._topic.change(changed)
            return self.book.tenants[name]

    def _before(self, name: str) -> Tenant:
        return self.book.get(name) or Tenant(name=name)

    def _rules_before(self, name: str) -> TenantRules:
        tenant = self._before(name)
        if not tenant.is_readable:
            reason = f"a newer version wrote rules of {name}, which this one would lose: change them with the newer one"
            raise TenantRulesError("tenant", reason)
        return tenant.rules

    def _check_loaded(self) -> None:
        if not self.is_loaded:
            raise BrokerError("the tenants have not been read yet; try again")


@asynccontextmanager
async def opened_tenants(
    connection: Address, names: TopicNames, clock: Clock, timeout_s: float
) -> AsyncIterator[TenantStore]:
    """Open a store and follow its topic until the context ends. Raises BrokerError if it cannot be read in time."""
    store = TenantStore(CompactedTopic(connection, names.tenants, names.history), clock)
    async with followed(store.follow, names.tenants, timeout_s):
        yield store
