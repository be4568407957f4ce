"""Log lines as text, or as one JSON object each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

REPEAT_S = 10.0
MAX_REMEMBERED = 1_000

_TEXT = "[%(asctime)s] [%(levelname)s] %(name)s: %(message)s"


class JsonFormatter(logging.Formatter):
    """`{"at", "level", "logger", "message"}`, and `"error"` with the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


class Thinned(logging.Filter):
    """Lets a message of the Kafka client through once in a while, with how often it came since the last time.

    While a broker is away the client says the same some hundreds of times a second.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: dict[str, tuple[float, int]] = {}  # message -> when it was let through, how often it came since

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("aiokafka"):
            return True
        message, now = record.getMessage(), self._monotonic()
        said_at, since = self._said.get(message, (None, 0))
        if said_at is not None and now - said_at < REPEAT_S:
            self._said[message] = said_at, since + 1
            return False
        if len(self._said) >= MAX_REMEMBERED:
            self._said.clear()
        self._said[message] = now, 0
        if since:
            record.msg, record.args = f"{message} (and {since} times since this was last said)", ()
        return True


def logging_config(level: str, layout: str) -> dict[str, Any]:
    """Return a `logging.config.dictConfig` that writes to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": _TEXT},
            "json": {"()": "light_scheduler.worker.logs.JsonFormatter"},
        },
        "filters": {"thinned": {"()": "light_scheduler.worker.logs.Thinned"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": layout, "filters": ["thinned"]}},
        "root": {"handlers": ["stderr"], "level": level},
        # Their errors reach a lane as exceptions; below that they tell of every connection and rebalance.
        "loggers": {"aiokafka": {"level": "ERROR"}, "faust": {"level": "WARNING"}, "mode": {"level": "WARNING"}},
    }
