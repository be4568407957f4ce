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

from light_scheduler.connection.diagnosis import fault_of
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.settings import load_settings

from .authority import Authority, Pair
from .secured import SHORT_LOGINS, SecuredKafka
from .waiting import eventually_blocking

STORES = ("keystore", "truststore")
TIMEOUT_S = 60.0


class Rotation:
    """`client` are the files of a client's settings, signed by the authority that the broker has had so far.

    With the mechanism of a login, the listener is the one that wants a certificate and a login.
    """

    def __init__(self, kafka: SecuredKafka, folder: Path, mechanism: str | None) -> None:
        folder.mkdir()
        self._kafka = kafka
        self._listener = "SSL" if mechanism is None else SHORT_LOGINS
        self._login = {} if mechanism is None else kafka.settings(mechanism)
        self._folder = folder
        self._next = Authority(folder, "next-authority")
        self._client_ca = folder / "client-ca.pem"
        shutil.copy(kafka.authority.path, self._client_ca)
        self.client = self._client_pair(kafka.authority)

    @property
    def settings(self) -> dict[str, str]:
        """Settings, as text, that let the client in."""
        return self._settings(self._client_ca, self.client)

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

    def _settings(self, ca: Path, pair: Pair) -> dict[str, str]:
        return {
            **self._login,
            "broker": f"kafka://{self._kafka.address(self._listener)}",
            "security_protocol": self._kafka.listeners[self._listener].protocol,
            "ssl_ca": str(ca),
            "ssl_certificate": str(pair.certificate),
            "ssl_key": str(pair.key),
        }

    def _await(self, ca: Path, pair: Pair, *, is_let_in: bool) -> None:
        """Wait until a client with these files is let in, or is not."""
        arguments = load_settings(self._settings(ca, pair), environment={}).connection.aiokafka()
        eventually_blocking(
            lambda: (asyncio.run(fault_of(arguments)) is None) is is_let_in, every=0.1, what="the change of the broker"
        )

    def _alter(self, **stores: Path | None) -> None:
        """Set the files of the listener; None: as in the broker's properties."""
        entries = [
            ConfigEntry(
                f"listener.name.{self._listener.lower()}.ssl.{store}.location",
                str(path or ""),
                incremental_operation=AlterConfigOpType.DELETE if path is None else AlterConfigOpType.SET,
            )
            for store, path in stores.items()
        ]
        admin = admin_client(self._kafka.servers)
        (broker,) = admin.list_topics(timeout=TIMEOUT_S).brokers
        changes = [ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=entries)]
        for done in admin.incremental_alter_configs(changes).values():
            done.result(TIMEOUT_S)


@contextmanager
def rotating(kafka: SecuredKafka, folder: Path, mechanism: str | None = None) -> Iterator[Rotation]:
    """Give a rotation that is undone at the end."""
    rotation = Rotation(kafka, folder, mechanism)
    try:
        yield rotation
    finally:
        rotation.undo()
