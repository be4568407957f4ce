"""Blocking calls into librdkafka, which do not hear of Ctrl-C until they return."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

LOOK_S = 0.2
"""Python does not hear of a signal that comes just before a lock is waited for, until the wait is over."""


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
