"""For commands that change data in Kafka directly: they need rights there, but no worker."""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

from light_scheduler.model import Requester
from light_scheduler.settings import Settings

from .answers import quiet_kafka_client

T = TypeVar("T")

READ_TIMEOUT_S = 4.0

log = logging.getLogger(__name__)


def on_kafka(settings: Settings, work: Callable[[], Awaitable[T]]) -> T:
    """Check that the broker answers, then do the work. Raises BrokerError, and what the work raises."""
    from light_scheduler.connection.diagnosis import fault_of

    async def done() -> T:
        if (fault := await fault_of(settings.connection.aiokafka())) is not None:
            raise fault
        return await work()

    quiet_kafka_client()
    log.debug("read %s of Kafka at %s", settings.topics.tenants, settings.bootstrap_servers)
    return asyncio.run(done())


def caller() -> Requester:
    """Return the user of the command line and their machine, for the audit trail."""
    return Requester(f"command line ({_user()})", socket.gethostname())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # containers may run as a user without a name
        return f"uid {os.getuid()}"
