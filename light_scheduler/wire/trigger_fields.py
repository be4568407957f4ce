"""Converts a trigger to the fields of a command; the reverse of `time_rule` and `backoff`."""

from __future__ import annotations

from light_scheduler.model import After, Backoff, Cron, FixedDelay, FixedRate, Once, Timing


def trigger_fields(trigger: Timing) -> dict[str, str]:
    """Return the fields of a command for a trigger, as text, without defaults.

    Raises ValueError for a fixed rate with an anchor, since that is a separate field, `start`.
    """
    if isinstance(trigger, Once):
        return {"at": str(trigger.at)}
    if isinstance(trigger, After):
        return {"after": str(trigger.delay)}
    if isinstance(trigger, FixedRate):
        if trigger.anchor is not None:
            raise ValueError("must have no anchor: use start, from which a fixed rate counts")
        return {"every": str(trigger.interval)}
    if isinstance(trigger, FixedDelay):
        return {"every": str(trigger.delay), "mode": "fixed-delay"}
    if isinstance(trigger, Cron):
        fields = {"cron": trigger.expression, "cron-dialect": trigger.dialect, "timezone": trigger.timezone}
        defaults = {"cron-dialect": "unix", "timezone": "UTC"}
        return {field: text for field, text in fields.items() if defaults.get(field) != text}
    return {"backoff": _backoff(trigger)}


def _backoff(trigger: Backoff) -> str:
    if trigger.intervals:
        return ",".join(map(str, trigger.intervals))
    parts = {
        "initial": str(trigger.initial),
        "factor": _decimal(trigger.factor),
        "max": None if trigger.longest is None else str(trigger.longest),
        "attempts": None if trigger.attempts is None else str(trigger.attempts),
        "jitter": _decimal(trigger.spread) if trigger.spread else None,
    }
    return " ".join(f"{name}={part}" for name, part in parts.items() if part is not None)


def _decimal(number: float) -> str:
    """Format a number without an exponent, which the codec does not read."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
