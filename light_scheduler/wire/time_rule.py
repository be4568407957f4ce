"""The time rule of a command: its trigger, and the fields that limit, spread and repeat its firings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import NOW, Acknowledgement, After, Bounds, Cron, FixedDelay, FixedRate, Once, Timing

NameOf = Callable[[str], str]
"""Returns the sender's name of a field: a header, or a member of a JSON object."""

TRIGGERS = frozenset({"at", "after", "every", "cron", "backoff"})
_ONE_SHOT = frozenset({"at", "after"})
_BOUNDS = frozenset({"start", "end", "max-firings", "jitter", "window", "misfire", "misfire-grace"})
_OF_SERIES_ONLY = ("start", "end", "max-firings")
_COMPLETION = frozenset({"ack-timeout", "max-attempts", "overlap"})
_NEEDS = {"mode": "every", "cron-dialect": "cron", "timezone": "cron"}
_BEYOND_ONE_SHOT = TRIGGERS - _ONE_SHOT | _NEEDS.keys()

TIME_RULE_FIELDS = TRIGGERS | _BOUNDS | _NEEDS.keys()
"""The fields of a time rule."""

OF_SERIES = (TIME_RULE_FIELDS | _COMPLETION) - _ONE_SHOT
"""The fields that a plain one-shot does not have."""

DEFAULT_MAX_ATTEMPTS = 10


def timing(given: dict[str, Any], name_of: NameOf) -> Timing:
    """Return the time rule of a command; now if it has none."""
    get = given.get
    at, after = get("at"), get("after")
    if not _BEYOND_ONE_SHOT.isdisjoint(given):
        return _series(given, name_of)
    if at is None:
        return NOW if after is None else After(after)
    if after is not None:
        raise _two_triggers(given, name_of)
    return Once(at)


def bounds(given: dict[str, Any], name_of: NameOf) -> Bounds | None:
    """Return the limits and the spread of the firings; None if there are none."""
    if _BEYOND_ONE_SHOT.isdisjoint(given):
        for field in _OF_SERIES_ONLY:
            if field in given:
                raise InvalidCommand(name_of(field), "has no meaning for a schedule that fires once")
    elif "on-past" in given:
        raise InvalidCommand(
            name_of("on-past"), f"is for a schedule that fires once; for a series use {name_of('misfire')}"
        )
    if _BOUNDS.isdisjoint(given):
        return None
    names = {field: field.replace("-", "_") for field in _BOUNDS if field in given}
    asked = Bounds(**{name: given[field] for field, name in names.items()})
    if asked.start is not None and asked.end is not None and asked.end < asked.start:
        raise InvalidCommand(name_of("end"), f"is before {name_of('start')}")
    return asked


def acknowledgement(given: dict[str, Any], name_of: NameOf) -> Acknowledgement | None:
    """Return how firings must be completed; None if they need not be."""
    if _COMPLETION.isdisjoint(given):
        return None
    if "backoff" in given:
        field = next(field for field in given if field in _COMPLETION)
        raise InvalidCommand(
            name_of(field), "has no meaning for a backoff series: it fires again until it is completed"
        )
    if "ack-timeout" not in given:
        field = next(field for field in given if field in _COMPLETION)
        raise InvalidCommand(name_of(field), f"needs {name_of('ack-timeout')}: the time to wait for the completion")
    fixed_delay = given.get("mode") == "fixed-delay"
    if fixed_delay and "overlap" in given:
        raise InvalidCommand(name_of("overlap"), "has no meaning for a fixed delay: its firings do not overlap")
    return Acknowledgement(
        given["ack-timeout"],
        given.get("max-attempts", 1 if fixed_delay else DEFAULT_MAX_ATTEMPTS),
        given.get("overlap", "allow"),
    )


def _series(given: dict[str, Any], name_of: NameOf) -> Timing:
    if len(given.keys() & TRIGGERS) > 1:
        raise _two_triggers(given, name_of)
    for field in given:
        if field in _NEEDS and _NEEDS[field] not in given:
            raise InvalidCommand(name_of(field), f"needs {name_of(_NEEDS[field])}")
    if "every" in given:
        interval = given["every"]
        return FixedDelay(interval) if given.get("mode") == "fixed-delay" else FixedRate(interval)
    if "cron" in given:
        return Cron(given["cron"], given.get("cron-dialect", "unix"), given.get("timezone", "UTC"))
    return given["backoff"]  # type: ignore[no-any-return]


def _two_triggers(given: dict[str, Any], name_of: NameOf) -> InvalidCommand:
    first, second, *_ = (name_of(field) for field in given if field in TRIGGERS)
    return InvalidCommand(second, f"is given together with {first}: a schedule has one trigger")
