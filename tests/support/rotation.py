"""Renewing the certificates of a TLS listener and of its clients, authority included, while both run."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them without __all__
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.connection.diagnosis import fault_of
from light_scheduler.devkit.readiness import admin_client

from .authority import Authority, Pair
from .secured import SecuredKafka
from .waiting import eventually_blocking

STORES = ("keystore", "truststore")


class Rotation:
    """`client` are the files of a client's settings, signed by the authority that the broker has had so far."""

    def __init__(self, kafka: SecuredKafka, folder: Path) -> None:
        folder.mkdir()
        self._kafka = kafka
        self._folder = folder
        self._next = Authority(folder, "next-authority")
        self._client_ca = folder / "client-ca.pem"
        shutil.copy(kafka.authority.path, self._client_ca)
        self.client = self._client_pair(kafka.authority)

    @property
    def settings(self) -> dict[str, str]:
        """Settings, as text, that let the client in."""
        return {
            "broker": f"kafka://{self._kafka.address('SSL')}",
            "security_protocol": "SSL",
            "ssl_ca": str(self._client_ca),
            "ssl_certificate": str(self.client.certificate),
            "ssl_key": str(self.client.key),
        }

    def renew(self) -> None:
        """Have both sides trust both authorities, then renew both certificates, then trust the next authority only.

        Returns when the broker does so: it takes a change over a moment after it has accepted it.
        """
        old, ours = self._kafka.authority.sign("tls-user", into="old"), self._next.sign("tls-user", into="next")
        both = self._folder / "both.pem"
        both.write_bytes(self._kafka.authority.path.read_bytes() + self._next.path.read_bytes())
        self._client_ca.write_bytes(both.read_bytes())
        self._alter(truststore=both)
        self._await(both, ours, is_let_in=True)
        self._client_pair(self._next)
        self._alter(keystore=self._next.sign("broker").together)
        self._await(self._next.path, ours, is_let_in=True)
        self._alter(truststore=self._next.path)
        self._await(self._next.path, old, is_let_in=False)
        self._client_ca.write_bytes(self._next.path.read_bytes())

    def undo(self) -> None:
        """Give the broker back what it was started with."""
        self._alter(**dict.fromkeys(STORES))

    def _client_pair(self, authority: Authority) -> Pair:
        signed = authority.sign("tls-user", into="rotating")
        pair = Pair(*(self._folder / path.name for path in signed))
        for source, target in zip(signed, pair, strict=True):
            if source != target:
                shutil.copy(source, target)
        return pair

    def _await(self, ca: Path, pair: Pair, *, is_let_in: bool) -> None:
        """Wait until a client with these files is let in, or is not."""
        security = KafkaSecurity(security_protocol="SSL", ssl_ca=ca, ssl_certificate=pair.certificate, ssl_key=pair.key)
        arguments = Connection(self._kafka.address("SSL"), security).aiokafka()
        eventually_blocking(
            lambda: (asyncio.run(fault_of(arguments)) is None) is is_let_in, every=0.1, what="the change of the broker"
        )

    def _alter(self, **stores: Path | None) -> None:
        """Set the files of the listener; None: as in the broker's properties."""
        entries = [
            ConfigEntry(
                f"listener.name.ssl.ssl.{store}.location",
                str(path or ""),
                incremental_operation=AlterConfigOpType.DELETE if path is None else AlterConfigOpType.SET,
            )
            for store, path in stores.items()
        ]
        admin = admin_client(self._kafka.servers)
        (broker,) = admin.list_topics(timeout=10).brokers
        changes = [ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=entries)]
        for done in admin.incremental_alter_configs(changes).values():
            done.result(10)


@contextmanager
def rotating(kafka: SecuredKafka, folder: Path) -> Iterator[Rotation]:
    """Give a rotation that is undone at the end."""
    rotation = Rotation(kafka, folder)
    try:
        yield rotation
    finally:
        rotation.undo()
