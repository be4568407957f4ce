"""Rules of tenants as records of the tenants topic, which also has tokens.

    tenant/{name}         {"rules": {"targets": ["orders-*"], ...}, "at": 1800000000000, "by": "..."}
    tenant/{name}/state   {"state": "paused", "at": 1800000000000, "by": "..."}

The state has its own key, so that writing rules at the same time does not resume a tenant. `at` is UTC epoch ms. Rules
from newer versions also have `pending_since` (UTC epoch ms), the time of the last change of `max_pending`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model.tenant import TENANT_NAME
from light_scheduler.model.tenant_rules import (
    Tenant,
    TenantBook,
    TenantRules,
    TenantRulesError,
    TenantState,
    check_tenant_rules,
)

Record = tuple[bytes, bytes]
"""Key and value."""

_PREFIX = "tenant/"
_STATE = "state"

log = logging.getLogger(__name__)


class StoredRules(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a tenant, and when and by whom they were set.

    `pending_since` is the time of the last change of `max_pending`. None if an older version set the rules; then `at`
    counts.
    """

    rules: TenantRules
    at: int
    by: str
    pending_since: int | None = None


class StoredState(msgspec.Struct, frozen=True):
    """The state of a tenant, and when and by whom it was set."""

    state: TenantState
    at: int
    by: str


_ENCODE = msgspec.json.Encoder().encode


def rules_record(name: str, stored: StoredRules) -> Record:
    """Return the record of a tenant's rules."""
    return f"{_PREFIX}{name}".encode(), _ENCODE(stored)


def state_record(name: str, stored: StoredState) -> Record:
    """Return the record of a tenant's state."""
    return f"{_PREFIX}{name}/{_STATE}".encode(), _ENCODE(stored)


def decode_tenant_record(key: bytes, value: bytes) -> tuple[str, StoredRules | StoredState] | None:
    """Return a tenant's name and its rules or state; None if a record is not about tenants. Raises FormatError."""
    if (place := _place_of(key)) is None:
        return None
    name, part = place
    if part not in ("", _STATE) or not TENANT_NAME.fullmatch(name):
        raise FormatError(f"{key!r} does not name a tenant")
    try:
        if part == _STATE:
            return name, msgspec.json.decode(value, type=StoredState)
        stored = msgspec.json.decode(value, type=StoredRules)
        check_tenant_rules(stored.rules)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TenantRulesError) as error:
        raise FormatError(f"{_PREFIX}{name} has rules that this version does not know: {error}") from None
    return name, stored


def tenant_book(entries: Mapping[bytes, bytes]) -> TenantBook:
    """Return the tenants in the entries of a compacted topic. A tenant with an unreadable record counts as paused."""
    tenants: dict[str, Tenant] = {}
    pending_since: dict[str, int] = {}
    for key, value in entries.items():
        try:
            found = decode_tenant_record(key, value)
        except FormatError as error:
            name = (_place_of(key) or ("", ""))[0]
            if not TENANT_NAME.fullmatch(name):
                log.warning("skipping a record of the tenants: %s", error)
                continue
            log.warning("no schedule of tenant %s fires: %s", name, error)
            tenants[name] = msgspec.structs.replace(tenants.get(name, Tenant(name=name)), is_readable=False)
            continue
        if found is None:
            continue
        name, stored = found
        tenant = tenants.get(name, Tenant(name=name))
        latest = max((tenant.changed_at, tenant.changed_by), (stored.at, stored.by))
        if isinstance(stored, StoredRules):
            pending_since[name] = stored.at if stored.pending_since is None else stored.pending_since
        changed = {"rules": stored.rules} if isinstance(stored, StoredRules) else {"state": stored.state}
        tenants[name] = msgspec.structs.replace(tenant, changed_at=latest[0], changed_by=latest[1], **changed)
    return TenantBook((tenants[name] for name in sorted(tenants)), pending_since)


def _place_of(key: bytes) -> tuple[str, str] | None:
    text = key.decode(errors="replace")
    if not text.startswith(_PREFIX):
        return None
    name, _, part = text.removeprefix(_PREFIX).partition("/")
    return name, part
