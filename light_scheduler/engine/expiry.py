"""The time to live: a firing that is later than the `ttl` of its schedule is not delivered, and expires."""

from __future__ import annotations

from light_scheduler.model import Schedule


def why_expired(schedule: Schedule, due: int, now: int) -> str | None:
    """Say why a firing is past its time to live; None: it is not. Instants are UTC epoch ms."""
    ttl = schedule.ttl
    if ttl is None or now <= due + ttl:
        return None
    return f"{now - due} ms after due; its time to live was {ttl} ms"
