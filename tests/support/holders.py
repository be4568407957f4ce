"""Requests of holders, among whom a worker shares what it can do at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from light_scheduler.web.limits.shares import HOLDER, Holder


@contextmanager
def request_of(holder: Holder) -> Iterator[None]:
    """What runs in it is for a holder."""
    token = HOLDER.set(holder)
    try:
        yield
    finally:
        HOLDER.reset(token)
