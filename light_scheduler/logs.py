"""Formats log lines as text or JSON objects, and filters them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import msgspec

from light_scheduler.errors import BrokerRefused, ConfigurationError, FormatTooNew, StateForeign
from light_scheduler.log_fields import current_fields
from light_scheduler.wire.instants import format_instant

REPEAT_S = 10.0
MAX_REMEMBERED = 1_000

_PASSES_BY_ITSELF = "GroupCoordinatorNotAvailableError"
"""A new broker returns this error until it has created its own topics. It is logged only if it lasts."""

# Finds the frameworks without importing them, since processes that rebuild state also log, but use neither.
# `importlib.util.find_spec` fails once faust is imported, because faust then replaces its own module.
_SPECS = map(PathFinder.find_spec, ("faust", "mode"))
_FRAMEWORK = tuple(str(Path(spec.origin).parent) for spec in _SPECS if spec and spec.origin)
_TEXT = "[%(asctime)s] [%(levelname)s] {process}%(name)s: %(message)s"


class TextFormatter(logging.Formatter):
    """`[instant] [level] logger: message`, followed by the traceback if there is one.

    Control characters in a message are escaped, so that content from senders cannot look like a separate line.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Format a message on one line."""
        record.message = on_one_line(record.message)
        return super().formatMessage(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """Format the instant in UTC, so that logs of machines in different time zones can be merged."""
        return instant_of(record)


class JsonFormatter(logging.Formatter):
    """`{"at", "level", "logger", "message"}`, and `"error"` with the traceback if there is one.

    Fields that are set (`log_fields`) precede the message: `topic`, `partition`, `tenant`, `schedule`, `trace_id`.
    Lines from one of a node's processes begin with `"process"`.
    """

    def __init__(self, process: str | None = None) -> None:
        super().__init__()
        self._origin = {} if process is None else {"process": process}

    def format(self, record: logging.LogRecord) -> str:
        line = {
            **self._origin,
            "at": instant_of(record),
            "level": record.levelname,
            "logger": record.name,
            **current_fields(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def instant_of(record: logging.LogRecord) -> str:
    """Return the time of a log record as `2026-01-01T00:00:00.007Z`."""
    return format_instant(round(record.created * 1_000))


def on_one_line(text: str) -> str:
    """Return a text with non-printable characters escaped as in Python."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class OfServices(logging.Filter):
    """Drops messages of the framework's services about their own starts and stops, from any logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not record.pathname.startswith(_FRAMEWORK)


class PlainErrors(logging.Filter):
    """Logs an error that people must fix as one line, since a traceback does not help them.

    The framework logs it at each level that it passes. Only the first is kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, ConfigurationError | BrokerRefused | FormatTooNew | StateForeign):
            return True
        text = str(error)
        if text in self._seen:
            return False
        self._seen.add(text)
        record.msg, record.args, record.exc_info = text, (), None
        return True


class Thinned(logging.Filter):
    """Limits repeated messages of clients to one every `REPEAT_S`, with the number of repetitions since.

    While a broker is down, the Kafka client logs the same message hundreds of times a second. An error that usually
    ends by itself is not logged the first time.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: dict[str, tuple[float, int]] = {}  # message -> (time when it was logged, repetitions since)

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(("aiokafka", "opentelemetry")):
            return True
        message, now = record.getMessage(), self._monotonic()
        if message not in self._said and _PASSES_BY_ITSELF in message:
            self._said[message] = now, 1
            return False
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


def logging_config(level: str, layout: str, process: str | None = None) -> dict[str, Any]:
    """Return a configuration for `logging.config.dictConfig` that logs to standard error.

    `process` marks the lines if several processes write to one log.
    """
    text = _TEXT.format(process="" if process is None else f"[{process}] ")
    filters = ["Thinned", "PlainErrors", *(["OfServices"] if level != "DEBUG" else [])]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"()": "light_scheduler.logs.TextFormatter", "fmt": text},
            "json": {"()": "light_scheduler.logs.JsonFormatter", "process": process},
        },
        "filters": {name: {"()": f"light_scheduler.logs.{name}"} for name in filters},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": layout, "filters": filters}},
        "root": {"handlers": ["stderr"], "level": level},
        # Their errors reach lanes as exceptions. Below this level, they log every connection and rebalance.
        "loggers": {
            "aiokafka": {"level": "ERROR"},
            "opentelemetry": {"level": "ERROR"},
            "faust": {"level": "WARNING"},
            "mode": {"level": "WARNING"},
        },
    }
