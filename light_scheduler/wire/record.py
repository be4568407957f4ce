"""What a codec needs of a Kafka record, with the names that aiokafka's ConsumerRecord gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class CommandRecord(Protocol):
    """A record as it was read: nothing in it has been looked at. `timestamp` is UTC epoch ms."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
