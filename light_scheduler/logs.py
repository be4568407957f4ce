"""Log lines as text, or as one JSON object each."""

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
"""A new broker answers this until it has created its own topics. It is logged only if it lasts."""

# Where they are, without importing them: processes that rebuild state log, too, and need neither. `find_spec` of
# importlib.util fails once faust is imported, which takes another module's place then.
_SPECS = map(PathFinder.find_spec, ("faust", "mode"))
_FRAMEWORK = tuple(str(Path(spec.origin).parent) for spec in _SPECS if spec and spec.origin)
_TEXT = "[%(asctime)s] [%(levelname)s] {process}%(name)s: %(message)s"


class TextFormatter(logging.Formatter):
    """`[instant] [level] logger: message`, and the traceback below where there is one.

    Control characters in a message are escaped: what somebody sent cannot look like a line of its own.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Write a message in one line."""
        record.message = on_one_line(record.message)
        return super().formatMessage(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """Write the instant in UTC, with its offset: logs of machines in several zones can be merged."""
        return instant_of(record)


class JsonFormatter(logging.Formatter):
    """`{"at", "level", "logger", "message"}`, and `"error"` with the traceback where there is one.

    Before the message come the fields that are set (`log_fields`): `topic`, `partition`, `tenant`, `schedule`,
    `trace_id`. Lines of one of a node's processes begin with `"process"`.
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
    """Return when a line was logged: `2026-01-01T00:00:00.007Z`."""
    return format_instant(round(record.created * 1_000))


def on_one_line(text: str) -> str:
    """Return a text with what is not printable as Python escapes it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class OfServices(logging.Filter):
    """Drops what the framework's services tell of their own starts and stops, under whatever logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not record.pathname.startswith(_FRAMEWORK)


class PlainErrors(logging.Filter):
    """Writes an error that people have to mend as one line: where in the code it was raised helps nobody.

    The framework logs it at each level that it passes; the first one is let through.
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
    """Lets a message of a client through once in a while, with how often it came since the last time.

    While a broker is away the Kafka client says the same some hundreds of times a second. What passes by itself is not
    let through the first time.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._said: dict[str, tuple[float, int]] = {}  # message -> when it was let through, how often it came since

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
    """Return a `logging.config.dictConfig` that writes to standard error.

    `process` is what lines are marked with where several processes write to one log.
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
        # Their errors reach a lane as exceptions; below that they tell of every connection and rebalance.
        "loggers": {
            "aiokafka": {"level": "ERROR"},
            "opentelemetry": {"level": "ERROR"},
            "faust": {"level": "WARNING"},
            "mode": {"level": "WARNING"},
        },
    }
