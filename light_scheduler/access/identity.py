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
        """Return whether this role may do all that another one may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class Right(NamedTuple):
    """The right that an operation needs: a role (None: anybody may use it), and whether it must be for all tenants.

    An operation about one tenant needs the role for that tenant; its path names the tenant.
    """

    role: Role | None
    all_tenants: bool = False


class Verdict(Enum):
    """Whether a request is carried out. A tenant that is hidden looks as if there were no such tenant."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    HIDDEN = "hidden"


@dataclass(frozen=True)
class Identity:
    """The sender of a request. `name` is for people and the audit trail; `tenants` None: all of them."""

    name: str
    role: Role
    tenants: frozenset[str] | None = None

    def sees(self, tenant: str) -> bool:
        """Return whether a tenant exists as far as this identity may know."""
        return self.tenants is None or tenant in self.tenants

    def verdict(self, right: Right, tenant: str | None = None) -> Verdict:
        """Judge a request for an operation; `tenant` is the one that its path names."""
        if right.role is None:
            return Verdict.ALLOWED
        if tenant is not None and not self.sees(tenant):
            return Verdict.HIDDEN
        if not self.role.includes(right.role) or (right.all_tenants and self.tenants is not None):
            return Verdict.FORBIDDEN
        return Verdict.ALLOWED


ANYONE = Identity("anonymous", Role.ADMIN)
"""The identity of all requests while no access is set up."""

PEER = Identity("worker", Role.READ)
"""Another worker, which asks for this one's share of an answer."""
