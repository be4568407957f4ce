"""fastavro, if it is installed."""

from __future__ import annotations

from typing import Any


def fast_avro() -> Any:
    """Return the library. Raises LookupError if it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise LookupError("Avro needs the extra `avro`: pip install 'light-scheduler[avro]'") from None
    return fastavro
