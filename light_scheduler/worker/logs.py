"""Log lines as text, or as one JSON object each."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

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


def logging_config(level: str, layout: str) -> dict[str, Any]:
    """Return a `logging.config.dictConfig` that writes to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": _TEXT},
            "json": {"()": "light_scheduler.worker.logs.JsonFormatter"},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": layout}},
        "root": {"handlers": ["stderr"], "level": level},
        # Their errors reach a lane as exceptions; below that they tell of every connection and rebalance.
        "loggers": {"aiokafka": {"level": "ERROR"}, "faust": {"level": "WARNING"}, "mode": {"level": "WARNING"}},
    }
