"""Telling systemd how a service is doing (sd_notify(3)): nothing is sent unless systemd asks for it."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"


class Notifications:
    """Sends to the socket that NOTIFY_SOCKET names; `watchdog_s` is how often WATCHDOG is due, None: not at all."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET")
        self.is_wanted = self._address is not None
        microseconds = environment.get("WATCHDOG_USEC", "")
        is_for_us = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.watchdog_s = int(microseconds) / 2e6 if self.is_wanted and is_for_us and microseconds.isdigit() else None

    def send(self, state: str) -> None:
        """Tell systemd; a socket that is gone is no error."""
        if self._address is None:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(state.encode(), address)
