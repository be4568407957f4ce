"""Where lanes get the rules of tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from light_scheduler.model.tenant_rules import NO_TENANTS, TenantBook


class Tenancy(Protocol):
    """The rules, which change while lanes run. `changed` are called after each change."""

    changed: list[Callable[[], None]]

    @property
    def book(self) -> TenantBook:
        """The rules of all tenants. A cycle looks once."""
        ...

    async def loaded(self) -> None:
        """Return when the rules have been read: nothing is fired before."""
        ...


class FixedTenancy:
    """Rules from elsewhere than Kafka: by default there are none."""

    def __init__(self, book: TenantBook = NO_TENANTS) -> None:
        self.book = book
        self.changed: list[Callable[[], None]] = []

    async def loaded(self) -> None:
        """There is nothing to wait for."""
