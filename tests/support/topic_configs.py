"""Changes of a topic's configuration that brokers go by when the call returns."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from .waiting import eventually_blocking

TIMEOUT_S = 60.0
MARKER = "file.delete.delay.ms"


def configure(bootstrap_servers: str, topic: str, configs: Mapping[str, str]) -> None:
    """Set configurations of a topic whose broker goes by them then.

    A broker tells of a change before it goes by it. It has gone by it when it tells of the next one: so there is one.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    delay = int(_told(admin, topic)[MARKER])
    for change in (configs, {MARKER: str(delay + 1)}):
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in change.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
        eventually_blocking(
            lambda change=change: change.items() <= _told(admin, topic).items(),  # type: ignore[misc]
            within=TIMEOUT_S,
            what=f"a broker that tells of {dict(change)}",
        )


def _told(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return {name: entry.value for name, entry in found.items()}
