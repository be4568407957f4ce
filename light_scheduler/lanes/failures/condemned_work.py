"""Condemned work, which fails every time: the lane refuses it instead of executing it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from light_scheduler.errors import SchedulerError

from .failing_work_search import Work, WorkFailedError

NO_FAULT_OF_WORK = (SchedulerError, OSError, MemoryError)
"""Errors caused by the state of the worker or its storage, not by the command or firing being executed."""

NOTHING_CONDEMNED: Mapping[Work, str] = {}

log = logging.getLogger(__name__)


class Condemned:
    """The work that one cycle must refuse, with the reasons. `met` is the work that it has refused.

    For `silenced` work, the refusal has failed as well, so it is not recorded.
    """

    def __init__(self, reasons: Mapping[Work, str], silenced: Collection[Work] = ()) -> None:
        self._reasons = reasons
        self._silenced = silenced
        self.met: list[Work] = []

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def __contains__(self, work: Work) -> bool:
        return work in self._reasons

    def __iter__(self) -> Iterator[Work]:
        return iter(self._reasons)

    def meet(self, work: Work) -> str | None:
        """Return why a piece of work must be refused, and note that it was. Return None if it may be executed."""
        reason = self._reasons.get(work)
        if reason is not None:
            self.met.append(work)
        return reason

    def is_silenced(self, work: Work) -> bool:
        return work in self._silenced


@contextmanager
def enduring(failure: str) -> Iterator[None]:
    """Log `failure` for an error in refusing work, and go on: there is nothing else to try."""
    try:
        yield
    except NO_FAULT_OF_WORK:
        raise
    except Exception:
        log.exception("%s", failure)


@contextmanager
def blaming(work: Callable[[], Work | None]) -> Iterator[None]:
    """Raise WorkFailedError for an error caused by a piece of work. `work` returns the one being executed."""
    try:
        yield
    except (*NO_FAULT_OF_WORK, WorkFailedError):  # the latter already names its work
        raise
    except Exception as error:
        if (failed := work()) is None:
            raise
        raise WorkFailedError(failed) from error
