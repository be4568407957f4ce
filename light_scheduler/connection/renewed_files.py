"""Values that are made from files, and made again when the files change."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from light_scheduler.errors import ConfigurationError

from .files import stamps

RETRY_S = 5.0
"""Between two tries to read files that are wrong: they can become right without a new stamp."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class Renewed(Generic[T]):
    """What `make` makes of `files`; `what` it is, a plural, is in the log. For any number of threads.

    Files that are wrong after a change, such as a certificate whose key is not there yet or that is not valid yet, are
    reported once. They are read again every `RETRY_S` and whenever they change; what was made last is used until they
    are right.
    """

    def __init__(
        self,
        make: Callable[[], T],
        files: tuple[Path, ...],
        what: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` raises ConfigurationError naming the setting at fault; so does this. `monotonic` is in seconds."""
        self._make, self._files, self._what, self._monotonic = make, files, what, monotonic
        self._retry_at, self._told = inf, ""
        self._lock = Lock()
        self._stamps = stamps(files)
        self._made = make()

    def current(self) -> T:
        """Return what the files make: the same object until it is made anew."""
        with self._lock:
            found = stamps(self._files)
            if found != self._stamps or self._monotonic() >= self._retry_at:
                self._stamps = found
                self._load()
            return self._made

    def _load(self) -> None:
        try:
            self._made = self._make()
        except ConfigurationError as error:
            self._retry_at = self._monotonic() + RETRY_S
            if self._told != (told := str(error)):
                log.warning("the files of the %s have changed, but the old ones stay in use: %s", self._what, error)
            self._told = told
        else:
            self._retry_at, self._told = inf, ""
            log.info("the %s have changed: new connections use them", self._what)
