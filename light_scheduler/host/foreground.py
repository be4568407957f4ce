"""Running in the foreground until a signal ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequested(BaseException):
    """SIGINT or SIGTERM arrived. Like KeyboardInterrupt, it is not caught by `except Exception`."""


@contextmanager
def stop_signals() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into one StopRequested in the main thread. Repeated signals do not interrupt the stop."""

    def stop(_signal_number: int, _frame: FrameType | None) -> None:
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        raise StopRequested

    handled = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, stop) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Yield an event that SIGINT or SIGTERM sets, for code that checks it and ends by itself. Nothing is
    interrupted."""
    event = threading.Event()
    handled = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, lambda _number, _frame: event.set()) for number in handled}
    try:
        yield event
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
