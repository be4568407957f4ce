"""Blocking calls into librdkafka, which notice Ctrl-C only when they return."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

LOOK_S = 0.2
"""Interval of the check for Ctrl-C: Python notices a signal that comes just before a wait for a lock only after it."""


def interruptible(call: Callable[[], T]) -> T:
    """Return what a call returns, or raise what it raises. KeyboardInterrupt leaves the call behind at once.

    A thread left behind ends with the process, so nothing that has to be cleaned up may run in it.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 (raised where the result is waited for)
            errors.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
    if errors:
        raise errors[0]
    return results[0]
