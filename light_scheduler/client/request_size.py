"""The maximum size of records that a client sends: checks the limit, and commands against it."""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from light_scheduler.errors import InvalidCommand

from .commands import CommandToSend

LEAST_BYTES, MOST_BYTES = 1_000, 1_000_000_000
"""The range of librdkafka's `message.max.bytes`; aiokafka has no such range."""


def request_limit(given: object) -> int:
    """Return the argument `max_request_bytes`. Raises InvalidCommand naming it if it is invalid."""
    if isinstance(given, bool) or not isinstance(given, int) or not LEAST_BYTES <= given <= MOST_BYTES:
        raise InvalidCommand(
            "max_request_bytes", f"must be a whole number from {LEAST_BYTES:,} to {MOST_BYTES:,} (bytes), not {given!r}"
        )
    return given


def check_size(command: CommandToSend, most: int) -> None:
    """Raise InvalidCommand if a command's record may exceed `most` bytes, by aiokafka's own estimate."""
    size = DefaultRecordBatchBuilder.estimate_size_in_bytes(command.key, command.value, command.headers)
    if size > most:
        raise InvalidCommand(
            "payload",
            f"is too large: {command.tenant}/{command.id} makes a record of {size:,} bytes, and max_request_bytes is "
            f"{most:,}",
        )
