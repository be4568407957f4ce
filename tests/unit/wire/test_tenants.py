"""Records of tenants' rules, beside those of tokens."""

from __future__ import annotations

from light_scheduler.model.tenant_rules import Tenant, TenantRules, TenantState
from light_scheduler.wire.tenants import StoredRules, StoredState, rules_record, state_record, tenant_book

AT = 1_800_000_000_000
RULES = TenantRules(targets=("shop-*",), firings_per_second=2.5)
RULES_RECORD = (b"tenant/shop", b'{"rules":{"targets":["shop-*"],"firings_per_second":2.5},"at":%d,"by":"ops"}' % AT)
STATE_RECORD = (b"tenant/shop/state", b'{"state":"paused","at":%d,"by":"dev"}' % (AT + 1))


def test_records_have_their_golden_bytes() -> None:
    assert rules_record("shop", StoredRules(RULES, AT, "ops")) == RULES_RECORD
    assert state_record("shop", StoredState(TenantState.PAUSED, AT + 1, "dev")) == STATE_RECORD


def test_rules_and_state_are_read_in_either_order_and_the_later_change_is_told() -> None:
    told = Tenant(name="shop", rules=RULES, state=TenantState.PAUSED, changed_at=AT + 1, changed_by="dev")
    for records in ([RULES_RECORD, STATE_RECORD], [STATE_RECORD, RULES_RECORD]):
        assert tenant_book(dict(records)).tenants == {"shop": told}


def test_records_of_others_are_passed_over() -> None:
    assert tenant_book({b"token/1": b"{}", b"peer-secret": b"{}"}).tenants == {}


def test_a_record_that_names_no_tenant_stops_nobody() -> None:
    strange = {b"tenant/": b"{}", b"tenant//state": b"{}", b"tenant/a b": b"{}", **dict([RULES_RECORD])}
    assert tenant_book(strange).tenants.keys() == {"shop"}


def test_a_tenant_whose_rules_a_newer_version_wrote_is_stopped_and_others_are_not() -> None:
    newer = b'{"rules":{"moon_phase":"full"},"at":1,"by":"ops"}'
    book = tenant_book(
        {b"tenant/new": newer, b"tenant/zero": b'{"rules":{"weight":0},"at":1,"by":"x"}', **dict([RULES_RECORD])}
    )
    assert book.stopped == {"new", "zero"}
    assert book.tenants["shop"].rules == RULES


def test_when_the_quota_of_pending_schedules_changed_last_is_known_even_of_rules_that_do_not_say() -> None:
    rules = TenantRules(max_pending=5)
    record = rules_record("shop", StoredRules(rules, AT, "ops", AT - 7))
    assert record[1] == b'{"rules":{"max_pending":5},"at":%d,"by":"ops","pending_since":%d}' % (AT, AT - 7)
    assert tenant_book(dict([record])).pending_since == {"shop": AT - 7}
    assert tenant_book(dict([rules_record("shop", StoredRules(rules, AT, "ops"))])).pending_since == {"shop": AT}
