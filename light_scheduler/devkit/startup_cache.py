"""Keeping a start of Kafka: later ones on this machine need about half of the processor time."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.host.jars import kafka_jars

from .broker import EmbeddedBroker, JavaStart
from .java_options import startup_cache

TIMEOUT_S = 180.0
"""For the start, and for the end, at which Java writes what it keeps."""


def keep_startup() -> Path:
    """Start and stop a broker for what Java keeps of it, unless that is there; return the file.

    Raises BrokerStartError if Kafka cannot be had or does not start, and OSError if nothing can be written there.
    """
    cache = startup_cache(kafka_jars())
    if cache.exists():
        return cache
    unfinished = cache.with_suffix(".part")
    broker = EmbeddedBroker(java=JavaStart(options=[f"-XX:AOTCacheOutput={unfinished}"], timeout=TIMEOUT_S))
    try:
        broker.start().stop(TIMEOUT_S)
        unfinished.replace(cache)
    finally:
        broker.close()
        unfinished.unlink(missing_ok=True)
    return cache
