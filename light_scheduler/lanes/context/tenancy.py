"""Where lanes get the rules of tenants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from light_scheduler.model.tenant_rules import NO_TENANTS, TenantBook


class Tenancy(Protocol):
    """The rules of tenants, which change while lanes run. The `changed` functions are called after each change."""

    changed: list[Callable[[], None]]

    @property
    def book(self) -> TenantBook:
        """The rules of all tenants. A cycle reads them once."""
        ...

    async def loaded(self) -> None:
        """Wait until the rules have been read. Nothing fires before that."""
        ...


class FixedTenancy:
    """Rules that do not come from Kafka. By default, there are none."""

    def __init__(self, book: TenantBook = NO_TENANTS) -> None:
        self.book = book
        self.changed: list[Callable[[], None]] = []

    async def loaded(self) -> None:
        """Return at once."""
