"""Makes blocking calls into librdkafka interruptible: they only notice Ctrl-C when they return."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

LOOK_S = 0.2
"""How often to check for Ctrl-C. Python handles a signal that arrives just before it waits for a lock only after the
wait."""


def interruptible(call: Callable[[], T]) -> T:
    """Return the result of a call, or raise its exception. On KeyboardInterrupt, return at once and abandon the call.

    An abandoned thread ends with the process, so it must not run anything that needs clean-up.
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
