"""Clients that one task leaves to the next: which of them are used again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from light_scheduler.pipeline.kafka.idle import IdleClients


class Client:
    def __init__(self, configuration: Mapping[str, Any]) -> None:
        self.read = {name: Path(path).read_text() for name, path in configuration.items() if name.startswith("ssl.")}
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_a_client_is_used_again_for_its_configuration_only() -> None:
    idle = IdleClients(Client, Client.close)
    first = idle.take({"group.id": "a"})
    idle.leave(first)
    assert idle.take({"group.id": "b"}).client is not first.client
    assert idle.take({"group.id": "a"}).client is first.client
    assert idle.take({"group.id": "a"}).client is not first.client, "it is taken"


def test_a_client_whose_certificate_was_renewed_is_closed_and_another_one_reads_the_new_one(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    certificate.write_text("old")
    configuration = {"ssl.certificate.location": str(certificate)}
    idle = IdleClients(Client, Client.close)
    before = idle.take(configuration)
    certificate.write_text("renewed while it is at work")
    idle.leave(before)
    after = idle.take(configuration)
    assert before.client.is_closed
    assert after.client.read == {"ssl.certificate.location": "renewed while it is at work"}
    idle.leave(after)
    assert idle.take(configuration).client is after.client
