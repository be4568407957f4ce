"""The time to live: a firing that is later than the `ttl` of its schedule expires instead of being delivered."""

from __future__ import annotations

from light_scheduler.model import Schedule


def why_expired(schedule: Schedule, due: int, now: int) -> str | None:
    """Return why a firing has expired; None if it has not. Instants are UTC epoch ms."""
    ttl = schedule.ttl
    if ttl is None or now <= due + ttl:
        return None
    return f"{now - due} ms after due; its time to live was {ttl} ms"
