"""Identities, their rights, and the rights that operations need. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import NamedTuple


class Role(StrEnum):
    """The role of an identity. Each role includes those before it."""

    METRICS = "metrics"
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        """Return whether this role may do everything that another one may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Right(NamedTuple):
    """The right that an operation needs: a role (None: no token needed), and whether the token must be for all tenants.

    An operation about one tenant needs the role for that tenant, which is in its path.
    """

    role: Role | None
    all_tenants: bool = False


class Verdict(Enum):
    """The decision about a request. A hidden tenant is treated as if it did not exist."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    HIDDEN = "hidden"


@dataclass(frozen=True)
class Identity:
    """The sender of a request. `name` is for people and the audit trail; `tenants` None: all."""

    name: str
    role: Role
    tenants: frozenset[str] | None = None

    def sees(self, tenant: str) -> bool:
        """Return whether this identity may know that a tenant exists."""
        return self.tenants is None or tenant in self.tenants

    def verdict(self, right: Right, tenant: str | None = None) -> Verdict:
        """Decide about a request for an operation. `tenant` is the one in its path."""
        if right.role is None:
            return Verdict.ALLOWED
        if tenant is not None and not self.sees(tenant):
            return Verdict.HIDDEN
        if not self.role.includes(right.role) or (right.all_tenants and self.tenants is not None):
            return Verdict.FORBIDDEN
        return Verdict.ALLOWED


ANYONE = Identity("anonymous", Role.ADMIN)
"""The identity of every request while no token exists."""

PEER = Identity("worker", Role.READ)
"""Another worker that requests this one's share of an answer."""
