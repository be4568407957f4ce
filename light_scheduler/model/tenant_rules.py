"""Rules of a tenant: allowed targets, quotas, and whether its schedules fire."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from light_scheduler.errors import FieldError

from .tenant import MAX_WEIGHT, TENANT_NAME

MOST_PATTERNS = 100
MOST_HEADER_NAME = 249
MOST_A_SECOND = 10_000_000
MOST_PENDING = 10_000_000_000

QUOTA = "quota."
"""Prefix of the field of a rejection for a quota. The name of the rule, or of the limit for all tenants, follows."""

_PATTERN = re.compile(r"[A-Za-z0-9._*-]{1,249}")
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_DISTRIBUTION = rf"^(key|round-robin|partition:[0-9]{{1,6}}|header:.{{1,{MOST_HEADER_NAME}}})$"

_RANGES: Mapping[str, tuple[float, float]] = {
    "max_payload_bytes": (0, 1 << 40),
    "max_pending": (0, MOST_PENDING),
    "commands_per_second": (0.001, MOST_A_SECOND),
    "weight": (1, MAX_WEIGHT),
    "firings_per_second": (0.001, MOST_A_SECOND),
}
"""Minimum and maximum value of rules."""

TENANT_DELETED = "its tenant was deleted"
"""Reason in the history of schedules that were cancelled with their tenant, and not by a command."""


class TenantRulesError(FieldError):
    """Rules of a tenant are invalid."""


class TenantWasDeleted(TenantRulesError):
    """A deleted tenant cannot be paused: that would undo its deletion."""


class TenantState(StrEnum):
    """PAUSED: nothing fires, but commands are applied. DELETED: commands are rejected and all schedules removed."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class OverRate(StrEnum):
    """The policy for commands above their tenant's rate. DELAY: they are applied when their turn comes."""

    REJECT = "reject"
    DELAY = "delay"


class Distribution(NamedTuple):
    """Chooses the target partition of a message by at most one of these rules, or by its key if none is set."""

    partition: int | None = None
    header: str | None = None
    is_round_robin: bool = False


def _described(description: str, field: str | None = None, **schema: Any) -> Meta:
    """Return the schema metadata of a rule, including its range if `field` is given."""
    if field is not None:
        schema["minimum"], schema["maximum"] = _RANGES[field]
    return Meta(description=description, extra_json_schema=schema)


class TenantRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The rules of a tenant. A rule that is null or missing restricts nothing."""

    targets: Annotated[
        tuple[str, ...] | None,
        _described(
            "Topics that messages may go to; * stands for any characters.",
            minItems=1,
            maxItems=MOST_PATTERNS,
            items={"type": "string", "pattern": f"^{_PATTERN.pattern}$"},
        ),
    ] = None
    default_target: Annotated[
        str | None, _described("Topic for commands that name none.", pattern=f"^{_TOPIC.pattern}$")
    ] = None
    distribution: Annotated[
        str | None,
        _described(
            "Which partition of the target: key (by default), round-robin, partition:N, header:NAME.",
            pattern=_DISTRIBUTION,
        ),
    ] = None
    max_payload_bytes: Annotated[int | None, _described("Largest payload, in bytes.", "max_payload_bytes")] = None
    max_pending: Annotated[int | None, _described("Pending schedules of each commands topic.", "max_pending")] = None
    commands_per_second: Annotated[
        float | None,
        _described(
            "Commands above this rate are rejected, or delayed; reports of completion are free.", "commands_per_second"
        ),
    ] = None
    over_rate: Annotated[
        OverRate | None,
        Meta(description="What happens to commands above commands_per_second: reject (by default) or delay."),
    ] = None
    firings_per_second: Annotated[float | None, _described("Firings above this rate wait.", "firings_per_second")] = (
        None
    )
    weight: Annotated[
        int | None, _described("Share of firings while tenants have more due than the workers can deliver.", "weight")
    ] = None


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant that has rules, or is or was stopped. `changed_at` is UTC epoch ms. `changed_by` is only for display."""

    name: str
    rules: TenantRules = TenantRules()
    state: TenantState = TenantState.ACTIVE
    changed_at: int = 0
    changed_by: str = ""
    is_readable: bool = True
    """False if a newer version wrote its rules. It is then treated as paused."""

    @property
    def is_stopped(self) -> bool:
        """Whether none of its schedules fire."""
        return self.state is not TenantState.ACTIVE or not self.is_readable

    def may_aim_at(self, topic: str) -> bool:
        """Return whether its messages may go to a topic."""
        return self.rules.targets is None or _matcher(self.rules.targets).fullmatch(topic) is not None


class TenantBook:
    """A snapshot of all tenants with rules. Falsy if there are none.

    `pending_since` has the time (UTC epoch ms) of the last change of each tenant's `max_pending`.
    """

    def __init__(self, tenants: Iterable[Tenant] = (), pending_since: Mapping[str, int] | None = None) -> None:
        self.pending_since: Mapping[str, int] = pending_since or {}
        self.tenants: Mapping[str, Tenant] = {tenant.name: tenant for tenant in tenants}
        self.get: Callable[[str], Tenant | None] = self.tenants.get

    def __bool__(self) -> bool:
        return bool(self.tenants)

    @cached_property
    def stopped(self) -> frozenset[str]:
        """The tenants whose schedules do not fire."""
        return frozenset(name for name, tenant in self.tenants.items() if tenant.is_stopped)

    @cached_property
    def deleted(self) -> frozenset[str]:
        """The tenants whose schedules are removed."""
        return frozenset(name for name, tenant in self.tenants.items() if tenant.state is TenantState.DELETED)

    @cached_property
    def counted(self) -> frozenset[str]:
        """The tenants whose pending schedules are limited."""
        return frozenset(name for name, tenant in self.tenants.items() if tenant.rules.max_pending is not None)


NO_TENANTS = TenantBook()


def check_tenant_name(name: str) -> None:
    """Raise TenantRulesError if the name is invalid."""
    if not TENANT_NAME.fullmatch(name):
        raise TenantRulesError(
            "tenant", f"{name!r} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-'"
        )


def check_tenant_rules(rules: TenantRules) -> None:
    """Raise TenantRulesError, with the field, if a rule is invalid."""
    if rules.targets is not None:
        if not 1 <= len(rules.targets) <= MOST_PATTERNS:
            raise TenantRulesError(
                "targets", f"must have 1 to {MOST_PATTERNS} patterns; leave it out to allow any topic"
            )
        for pattern in rules.targets:
            if not _PATTERN.fullmatch(pattern):
                raise TenantRulesError("targets", f"{pattern!r} is not a topic name or a pattern such as orders-*")
    if rules.default_target is not None:
        if not _TOPIC.fullmatch(rules.default_target):
            raise TenantRulesError("default_target", f"{rules.default_target!r} is not a topic name")
        if rules.targets is not None and not _matcher(rules.targets).fullmatch(rules.default_target):
            raise TenantRulesError("default_target", f"{rules.default_target} is not among the allowed targets")
    parse_distribution(rules.distribution)
    for field in _RANGES:
        _check_range(field, getattr(rules, field))


@lru_cache(maxsize=1_000)
def parse_distribution(text: str | None) -> Distribution:
    """Parse a distribution. Raises TenantRulesError."""
    if text in (None, "key"):
        return Distribution()
    if text == "round-robin":
        return Distribution(is_round_robin=True)
    kind, _, value = text.partition(":")
    if kind == "partition" and re.fullmatch(r"\d{1,6}", value, re.ASCII):
        return Distribution(partition=int(value))
    if kind == "header" and 1 <= len(value) <= MOST_HEADER_NAME:
        return Distribution(header=value)
    raise TenantRulesError("distribution", f"{text!r} must be key, round-robin, partition:N or header:NAME")


def _check_range(field: str, value: float | None) -> None:
    least, most = _RANGES[field]
    if value is not None and not least <= value <= most:
        raise TenantRulesError(field, f"{value} must be from {least} to {most}")


@lru_cache(maxsize=1_000)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, patterns)))
