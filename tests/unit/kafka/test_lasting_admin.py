"""A client of administration that lives as long as its worker takes renewed certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.authority import Authority

from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.errors import ConfigurationError
from light_scheduler.kafka.lasting_admin import LastingAdmin
from light_scheduler.kafka.topic_admin import admin_client


def test_it_is_made_anew_when_its_files_change_and_kept_while_they_are_wrong(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.sign("worker")
    security = KafkaSecurity(
        security_protocol="SSL", ssl_ca=authority.path, ssl_certificate=pair.certificate, ssl_key=pair.key
    )
    made: list[Any] = []

    def make(connection: Connection) -> Any:
        made.append(admin_client(connection))
        return made[-1]

    admin = LastingAdmin(Connection("127.0.0.1:1", security), make)
    first = admin()
    assert admin() is first
    pair.key.write_bytes(b"half of it")
    assert admin() is first
    authority.sign("worker")
    assert admin() is made[1]
    assert len(made) == 2


def test_without_any_usable_file_there_is_no_client(tmp_path: Path) -> None:
    security = KafkaSecurity(security_protocol="SSL", ssl_ca=tmp_path / "missing.pem")
    with pytest.raises(ConfigurationError, match="setting ssl_ca"):
        LastingAdmin(Connection("127.0.0.1:1", security))()
