"""Which targets the rules of tenants name."""

from __future__ import annotations

from light_scheduler.doctor.named_topics import targets_of
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState


def test_targets_are_those_that_rules_name_and_that_firings_may_go_to() -> None:
    book = TenantBook(
        [
            Tenant(name="anywhere"),
            Tenant(name="bills", rules=TenantRules(targets=("bills-*", "bills", "mails"), default_target="bills-late")),
            Tenant(name="mails", rules=TenantRules(default_target="mails"), state=TenantState.PAUSED),
            Tenant(name="gone", rules=TenantRules(default_target="gone"), state=TenantState.DELETED),
            Tenant(name="nowhere", rules=TenantRules(targets=("__consumer_offsets",))),
        ]
    )
    assert targets_of(book, frozenset({"__consumer_offsets"})) == ["bills", "bills-late", "mails"]
