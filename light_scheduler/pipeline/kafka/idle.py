"""Idle clients that a task leaves to the next one in its process: connecting again for each task would cost as much as
a micro-batch.

librdkafka reads certificates when a client is created. So a client is discarded if the files that it was created with
have changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from light_scheduler.connection.files import Stamp, stamps

_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")

T = TypeVar("T")


class Held(NamedTuple, Generic[T]):
    """A client, its configuration and its files. It `is_current` unless the files have changed since."""

    client: T
    configuration: Mapping[str, Any]
    files: tuple[Stamp | None, ...]

    @property
    def is_current(self) -> bool:
        return self.files == files_of(self.configuration)


class IdleClients(Generic[T]):
    """One idle client for each configuration. `make` creates a client, `close` ends an outdated one."""

    def __init__(self, make: Callable[[Mapping[str, Any]], T], close: Callable[[T], object]) -> None:
        self._make = make
        self._close = close
        self._idle: dict[tuple[int, str], Held[T]] = {}

    def take(self, configuration: Mapping[str, Any]) -> Held[T]:
        """Return the idle client for a configuration, or a new one."""
        held = self._idle.pop(_place(configuration), None)
        if held is not None and held.is_current:
            return held
        if held is not None:
            self._close(held.client)
        found = files_of(configuration)  # before they are read, since they may change meanwhile
        return Held(self._make(configuration), configuration, found)

    def leave(self, held: Held[T]) -> None:
        """Keep a client for the next task."""
        self._idle[_place(held.configuration)] = held


def files_of(configuration: Mapping[str, Any]) -> tuple[Stamp | None, ...]:
    """Return the stamps of the files that a new client with a configuration would read."""
    return stamps(tuple(Path(configuration[name]) for name in _FILES if name in configuration))


def _place(configuration: Mapping[str, Any]) -> tuple[int, str]:
    return os.getpid(), repr(sorted(configuration.items()))
