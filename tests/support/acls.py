"""Giving rights on a broker of a test's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from light_scheduler.devkit.readiness import admin_client
from light_scheduler.devkit.waiting import wait_until
from light_scheduler.kafka.rights import Right

_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Alter": AclOperation.ALTER,
    "Create": AclOperation.CREATE,
}


def grant(servers: str, principal: str, rights: Sequence[Right]) -> None:
    """Give somebody rights."""
    bindings = [
        AclBinding(
            *(_RESOURCES[right.resource], right.name, ResourcePatternType[right.pattern.upper()], principal, "*"),
            *(_OPERATIONS[operation], AclPermissionType.ALLOW),
        )
        for right in rights
        for operation in right.operations
    ]
    admin = admin_client(servers)
    for done in admin.create_acls(bindings).values():
        done.result(30)
    wait_until(lambda: set(bindings) <= _in_force(admin, principal), timeout=60, what="the rights to be in force")


def revoke(servers: str, principal: str) -> None:
    """Take all rights from somebody."""
    admin = admin_client(servers)
    for done in admin.delete_acls([_all_of(principal)]).values():
        done.result(30)
    wait_until(lambda: not _in_force(admin, principal), timeout=60, what="the rights to be gone")


def _in_force(admin: Any, principal: str) -> set[AclBinding]:
    return set(admin.describe_acls(_all_of(principal)).result(30))


def _all_of(principal: str) -> AclBindingFilter:
    anybody: Any = None
    return AclBindingFilter(
        *(ResourceType.ANY, anybody, ResourcePatternType.ANY, principal, anybody),
        *(AclOperation.ANY, AclPermissionType.ANY),
    )
