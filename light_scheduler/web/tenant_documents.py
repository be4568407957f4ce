"""The JSON documents of tenants' rules."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState


class TenantDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant that has rules, or is or was paused or deleted."""

    name: str
    state: Annotated[
        TenantState,
        Meta(description="paused: nothing fires. deleted: commands are rejected, and all schedules are removed."),
    ]
    rules: TenantRules
    changed_at: Annotated[int, Meta(description="UTC epoch ms.")]
    changed_by: str
    is_readable: Annotated[
        bool, Meta(description="false: a newer version wrote the rules. Nothing of the tenant fires on this worker.")
    ]

    @classmethod
    def of(cls, tenant: Tenant) -> TenantDocument:
        """Show a tenant."""
        return cls(
            name=tenant.name,
            state=tenant.state,
            rules=tenant.rules,
            changed_at=tenant.changed_at,
            changed_by=tenant.changed_by,
            is_readable=tenant.is_readable,
        )


class TenantList(msgspec.Struct, frozen=True, kw_only=True):
    """The tenants that have rules, or are or were paused or deleted, by name. Other tenants need no rules, and are not
    listed."""

    tenants: list[TenantDocument]

    @classmethod
    def of(cls, book: TenantBook) -> TenantList:
        """Show all tenants of a book."""
        return cls(tenants=[TenantDocument.of(tenant) for _, tenant in sorted(book.tenants.items())])
