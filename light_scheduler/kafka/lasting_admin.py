"""An administration client that stays connected, and is made anew when the files of its connection change.

librdkafka reads certificates and passwords once: a client that lives for months would fail when they have expired.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from confluent_kafka.admin import AdminClient

from light_scheduler.connection import Connection
from light_scheduler.errors import ConfigurationError

from .topic_admin import admin_client

log = logging.getLogger(__name__)


class LastingAdmin:
    """Call it for the client to use now. Raises ConfigurationError if there never was one."""

    def __init__(self, connection: Connection, make: Callable[[Connection], AdminClient] = admin_client) -> None:
        self._connection = connection
        self._make = make
        self._client: AdminClient | None = None
        self._stamp: object = None

    def __call__(self) -> AdminClient:
        stamp = self._connection.stamp()
        if self._client is None or stamp != self._stamp:
            try:
                self._client = self._make(self._connection)
            except ConfigurationError as error:
                if self._client is None:
                    raise
                log.warning("%s; the connection made before is still used", error)
            self._stamp = stamp
        return self._client

    def replace(self, client: AdminClient) -> None:
        """Have another client made, unless that was done since `client` was given out.

        librdkafka asks the broker that it took for the controller, also when that is gone; a new client learns of
        another.
        """
        if self._client is client:
            self._client = None
