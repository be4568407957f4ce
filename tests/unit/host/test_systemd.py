"""What systemd is told, and that nothing is sent unless it asks."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from light_scheduler.host.systemd import READY, Notifications


def test_systemd_hears_what_is_sent(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(5)
        Notifications({"NOTIFY_SOCKET": address}).send(READY)
        assert systemd.recv(100) == b"READY=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": "/no/such/socket"}])
def test_without_somebody_who_listens_nothing_happens(environment: dict[str, str]) -> None:
    Notifications(environment).send(READY)
    assert Notifications(environment).is_wanted == bool(environment)


@pytest.mark.parametrize(
    ("environment", "every_s"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({}, None),
    ],
    ids=["any process", "this process", "another process", "no watchdog"],
)
def test_the_watchdog_hears_twice_as_often_as_it_asks(environment: dict[str, str], every_s: float | None) -> None:
    assert Notifications({"NOTIFY_SOCKET": "@any", **environment}).watchdog_s == every_s
