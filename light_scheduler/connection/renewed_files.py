"""Values made from files, and made again when the files change."""

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
"""How often invalid files are read again: they can become valid without a new stamp."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class Renewed(Generic[T]):
    """The value that `make` makes from `files`. `what`, a plural, names it in the log. Thread-safe.

    If files are invalid after a change, that is reported once. For example, a certificate's key may not be there yet,
    or the certificate is not valid yet. They are read again every `RETRY_S` and whenever they change; until they are
    valid, the previous value is used.
    """

    def __init__(
        self,
        make: Callable[[], T],
        files: tuple[Path, ...],
        what: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`make` raises ConfigurationError naming the invalid setting, and so does this. `monotonic` is in seconds."""
        self._make, self._files, self._what, self._monotonic = make, files, what, monotonic
        self._retry_at, self._told = inf, ""
        self._lock = Lock()
        self._stamps = stamps(files)
        self._made = make()

    def current(self) -> T:
        """Return the current value: the same object until it is made again."""
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
