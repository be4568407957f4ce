"""Notifies systemd of a service's state (sd_notify(3)). Sends nothing unless systemd asks for it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"


class Notifications:
    """Sends to the socket in NOTIFY_SOCKET. `watchdog_s` is the interval for WATCHDOG messages; None: none."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET")
        self.is_wanted = self._address is not None
        microseconds = environment.get("WATCHDOG_USEC", "")
        is_for_us = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.watchdog_s = int(microseconds) / 2e6 if self.is_wanted and is_for_us and microseconds.isdigit() else None

    def send(self, state: str) -> None:
        """Send a state. A socket that is gone is not an error."""
        if self._address is None:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(state.encode(), address)
