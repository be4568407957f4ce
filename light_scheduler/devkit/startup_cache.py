"""Caches a start of Kafka, so that later ones on this machine need about half of the processor time."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.host.jars import kafka_jars

from .broker import EmbeddedBroker, JavaStart
from .java_options import startup_cache

TIMEOUT_S = 180.0
"""Time-out of the start, and of the stop, at which Java writes its cache."""


def keep_startup() -> Path:
    """Start and stop a broker so that Java writes its cache, unless it exists. Return the file.

    Raises BrokerStartError if Kafka is not available or does not start, and OSError if the file cannot be written.
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
