"""The control fields of a command, in one table of rules for all formats.

A field is named like its header without the prefix `schedule-`. Native headers and the JSON form are both parsed to a
`dict` of field to value with these rules. `command_from` builds the command from it.
"""

from __future__ import annotations

import binascii
import difflib
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, get_args

from light_scheduler.model import FIRE_PAST, REJECT_PAST, TENANT_NAME, CronDialect, Misfire, Overlap

from .backoff import parse_backoff
from .durations import MAX_SHOWN, parse_span, shown
from .instants import parse_instant

CONTROL_PREFIX = "schedule-"
"""The prefix of all headers of the scheduler."""

Parse = Callable[[str], Any]

_LONGEST_EXPRESSION = 1_000
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
TOPIC_PATTERN = rf"^(?!\.{{1,2}}$){_TOPIC.pattern}$"
"""The pattern of topics that `parse_topic` allows, for a JSON Schema."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
ID_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]+$"
"""The pattern of ids that `parse_id` allows, for a JSON Schema."""
ONE_ID_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f*]$"
"""The pattern of ids in commands for one schedule."""
SELECTION_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*\*$"
"""The pattern of ids in bulk commands."""


@lru_cache(maxsize=4096)
def parse_tenant(text: str) -> str:
    """Return a valid tenant name. Raises ValueError if it is invalid."""
    if not TENANT_NAME.fullmatch(text):
        raise ValueError(
            f"{shown(text)} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    return text


@lru_cache(maxsize=4096)
def parse_topic(text: str) -> str:
    """Return a valid Kafka topic name. Raises ValueError if it is invalid."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError(f"{shown(text)} is not a topic name: use 1 to 249 letters, digits, '.', '_' and '-'")
    return text


def parse_id(text: str) -> str:
    """Return a valid schedule id, of any length. Raises ValueError if it is empty or has control characters."""
    # Printable text has no control characters, and that check is fast. Only other text is searched.
    if not text or (not text.isprintable() and _CONTROL.search(text)):
        raise ValueError("must not be empty" if not text else f"{shown(text)} has control characters")
    return text


MAX_LABELS = 64
MAX_LABEL_BYTES = 512
MAX_LABELS_BYTES = 8_192
"""Limits of the labels of a schedule or selection: their number, the size of a name with its value, and the total size,
in bytes of UTF-8.
"""


def parse_labels(text: str) -> dict[str, str]:
    """Parse labels such as `team=billing,kind=reminder`. Raises ValueError."""
    pairs = []
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{shown(part)} is not a label: use name=value,name=value")
        pairs.append((name.strip(), value.strip()))
    return labels_of(pairs)


def labels_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return labels by name.

    Raises ValueError if a label has no name, has control characters or occurs twice, or if there are too many or too
    long ones.
    """
    labels: dict[str, str] = {}
    size = 0
    for name, value in pairs:
        size += (length := len(name.encode()) + len(value.encode()))
        if length > MAX_LABEL_BYTES:
            raise ValueError(f"label {shown(name)} has {length:,} bytes; at most {MAX_LABEL_BYTES} are allowed")
        if size > MAX_LABELS_BYTES or len(labels) == MAX_LABELS:
            raise ValueError(f"at most {MAX_LABELS} labels with {MAX_LABELS_BYTES:,} bytes in all are allowed")
        if not name:
            raise ValueError("a label has no name: use name=value,name=value")
        if _CONTROL.search(name) or _CONTROL.search(value):
            raise ValueError(f"label {shown(name)} has control characters")
        if name in labels:
            raise ValueError(f"label {shown(name)} is given twice")
        labels[name] = value
    return labels


def _on_past(text: str) -> int | None:
    if text == "fire":
        return FIRE_PAST
    if text == "reject":
        return REJECT_PAST
    try:
        return parse_span(text)
    except ValueError as error:
        raise ValueError(f"use fire, reject or a duration of grace: {error}") from None


def _integer(lowest: int, highest: int) -> Parse:
    longest = len(str(highest))

    def parse(text: str) -> int:
        if len(text) <= longest and text.isascii() and text.isdigit() and lowest <= (number := int(text)) <= highest:
            return number
        raise ValueError(f"{shown(text)} is not a whole number from {lowest} to {highest}")

    return parse


def _choice(*choices: str) -> Parse:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{shown(text)} must be one of {', '.join(choices)}")
        return text

    return parse


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{shown(text)} must be true or false")
    return text == "true"


def _positive_span(text: str) -> int:
    ms = parse_span(text)
    if ms == 0:
        raise ValueError("must be at least 1 ms")
    return ms


def _plain_text(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    if len(text) > _LONGEST_EXPRESSION:
        raise ValueError(f"has {len(text)} characters; at most {_LONGEST_EXPRESSION} are allowed")
    return text


def parse_firing_id(text: str) -> tuple[str, int]:
    """Parse a firing's id to the schedule's id and the due time (ms). Raises ValueError."""
    id, at, due = text.rpartition("@")
    if not at or not (due.isascii() and due.isdigit() and len(due) <= 15):
        raise ValueError(f"{shown(text)} is not the id of a firing, which is the schedule id, @ and the due time in ms")
    return parse_id(id), int(due)


def _command(text: str) -> str:
    if text in COMMANDS:
        return text
    raise ValueError(f"{shown(text)} is not a command; use one of {', '.join(COMMANDS)}{closest(text, COMMANDS)}")


def parse_base64(text: str) -> bytes:
    """Decode standard base64, padded, without line breaks.

    Raises ValueError for anything else. The error does not contain the text, which may be a confidential payload.
    """
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"is not base64: {error}") from None
    if binascii.b2a_base64(data, newline=False).decode() != text:
        # Unused bits of the last character must be zero. Otherwise, two texts would decode to the same bytes.
        raise ValueError("is not base64 in its canonical form")
    return data


def closest(name: str, known: Collection[str]) -> str:
    """Return `; did you mean X?` if a known name is similar, or is a path that ends in `name`; otherwise empty."""
    matches = [one for one in known if one.endswith(f".{name}")] or difflib.get_close_matches(
        name[:MAX_SHOWN], known, n=1
    )
    return f"; did you mean {matches[0]}?" if matches else ""


MOST_COMPARED = 50


def may_mean(names: Iterable[str], field: str) -> bool:
    """Return whether any of these unknown names is similar to a field, so that it is probably meant.

    Returns True for more than `MOST_COMPARED` names, since a comparison takes 20 us, and a record can have 100,000.
    """
    some = list(islice(names, MOST_COMPARED + 1))
    return len(some) > MOST_COMPARED or any(
        difflib.get_close_matches(name[:MAX_SHOWN].lower(), [field], n=1) for name in some
    )


class FieldRule(NamedTuple):
    """The rule of a field: the parser for its text, and its path and types in the JSON form.

    `types` are the allowed JSON types. A number stands for its decimal text.
    """

    parse: Parse
    json_path: str
    types: tuple[str, ...]
    summary: str


COMMANDS = ("schedule", "cancel", "pause", "resume", "trigger", "reschedule", "complete", "extend")

_STRING = ("string",)
_NUMBER = ("integer", "string")

RULES: dict[str, FieldRule] = {
    "command": FieldRule(_command, "command", _STRING, f"{', '.join(COMMANDS)}; default: schedule."),
    "id": FieldRule(parse_id, "id", _STRING, "Id of the schedule, unique within the tenant. Default: the key."),
    "tenant": FieldRule(parse_tenant, "tenant", _STRING, "Tenant of the schedule. Default: default."),
    "at": FieldRule(
        parse_instant, "trigger.at", _NUMBER, "Fire once at this instant: UTC epoch ms, or RFC 3339 with an offset."
    ),
    "after": FieldRule(parse_span, "trigger.after", _NUMBER, "Fire once after this delay: 90s, 15m, PT15M."),
    "every": FieldRule(_positive_span, "trigger.every", _NUMBER, "Fire repeatedly, with this interval."),
    "mode": FieldRule(
        _choice("fixed-rate", "fixed-delay"),
        "trigger.mode",
        _STRING,
        "fixed-rate (default): count the interval from the last due time. fixed-delay: from the last completion.",
    ),
    "cron": FieldRule(_plain_text, "trigger.cron", _STRING, "Fire by a cron expression, such as 0 9 * * 1-5."),
    "cron-dialect": FieldRule(
        _choice(*get_args(CronDialect)),
        "trigger.cron_dialect",
        _STRING,
        "Syntax of the cron expression: unix (default), cron4j, quartz, spring.",
    ),
    "timezone": FieldRule(
        _plain_text,
        "trigger.timezone",
        _STRING,
        "Time zone of the cron expression, such as Europe/Prague. Default: UTC.",
    ),
    "backoff": FieldRule(
        parse_backoff,
        "trigger.backoff",
        ("string", "array", "object"),
        "Fire at growing intervals until completed: 1s,2s,4s or initial=5s factor=2 max=1h attempts=50 jitter=0.1.",
    ),
    "start": FieldRule(parse_instant, "trigger.start", _NUMBER, "A series does not fire before this instant."),
    "end": FieldRule(parse_instant, "trigger.end", _NUMBER, "A series does not fire after this instant."),
    "max-firings": FieldRule(
        _integer(1, 2**53), "trigger.max_firings", _NUMBER, "Maximum number of firings of a series."
    ),
    "jitter": FieldRule(
        parse_span,
        "trigger.jitter",
        _NUMBER,
        "Delay each firing by a random part of this duration.",
    ),
    "window": FieldRule(
        parse_span, "trigger.window", _NUMBER, "Deliver each firing at a random instant within this duration after due."
    ),
    "misfire": FieldRule(
        _choice(*get_args(Misfire)),
        "misfire",
        _STRING,
        "Missed firings of a series: coalesce (default, deliver the latest), skip, or deliver all.",
    ),
    "misfire-grace": FieldRule(
        parse_span, "misfire_grace", _NUMBER, "A firing that is later than this counts as missed. Default: 30s."
    ),
    "target-topic": FieldRule(parse_topic, "target.topic", _STRING, "Topic to deliver the message to."),
    "target-key": FieldRule(
        str.encode, "target.key", ("string", "null"), "Key of the message. Default: the entity key."
    ),
    "target-key-base64": FieldRule(
        parse_base64, "target.key_base64", _STRING, "Key of the message as base64, for a key that is not text."
    ),
    "target-partition": FieldRule(
        _integer(0, 2**31 - 1), "target.partition", _NUMBER, "Partition to deliver the message to. Default: by its key."
    ),
    "target-partition-key": FieldRule(
        str.encode,
        "target.partition_key",
        _STRING,
        "Choose the partition by this key instead of the key of the message.",
    ),
    "ttl": FieldRule(parse_span, "ttl", _NUMBER, "Do not deliver the message later than this after due."),
    "labels": FieldRule(
        parse_labels, "labels", ("object", "string"), "Labels to find the schedule by: team=billing,kind=reminder."
    ),
    "priority": FieldRule(
        _integer(0, 255),
        "priority",
        _NUMBER,
        "Order among firings that are due at the same instant: 0 (first) to 255. Default: 100.",
    ),
    "paused": FieldRule(_flag, "paused", ("boolean", "string"), "true: do not fire until the schedule is resumed."),
    "on-past": FieldRule(
        _on_past,
        "on_past",
        _NUMBER,
        "If the instant has passed: fire (default), reject, or fire only within this duration.",
    ),
    "on-conflict": FieldRule(
        _choice("replace", "keep", "fail"),
        "on_conflict",
        _STRING,
        "If a schedule with this id is pending: replace it (default), keep it, or fail.",
    ),
    "expected-version": FieldRule(
        _integer(1, 2**63 - 1), "expected_version", _NUMBER, "Change the schedule only if it has this version."
    ),
    "ack-timeout": FieldRule(
        _positive_span, "ack_timeout", _NUMBER, "Deliver a firing again if it is not completed within this duration."
    ),
    "max-attempts": FieldRule(
        _integer(1, 1_000_000),
        "max_attempts",
        _NUMBER,
        "Maximum number of deliveries of a firing that is not completed.",
    ),
    "overlap": FieldRule(
        _choice(*get_args(Overlap)),
        "overlap",
        _STRING,
        "If a firing is due before the last one is completed: allow (default), skip, or queue it.",
    ),
    "firing-id": FieldRule(
        parse_firing_id, "firing_id", _STRING, "Firing to complete or extend: schedule-firing-id of the message."
    ),
    "attempt": FieldRule(
        _integer(1, 2**31 - 1), "attempt", _NUMBER, "Attempt to complete or extend: schedule-attempt of the message."
    ),
    "completion": FieldRule(
        _choice("success", "failure"),
        "completion",
        _STRING,
        "Result of processing the message: success (default) or failure.",
    ),
    "reply-topic": FieldRule(parse_topic, "reply_topic", _STRING, "Topic to send the result to."),
    "reply-partition": FieldRule(
        _integer(0, 2**31 - 1), "reply_partition", _NUMBER, "Partition to send the result to. Default: by the key."
    ),
    "correlation-id": FieldRule(str.encode, "correlation_id", _STRING, "Value to send back with the result."),
}

ON_FIRINGS = frozenset(
    {"due", "fired-at", "sequence", "version", "source-topic", "source-partition", "source-offset", "original-due"}
    | {"delivery-id", "redriven-from", "key"}
)
"""Fields of firings only."""

OF_WORKERS = frozenset(
    CONTROL_PREFIX + field
    for field in (
        *("forwarded-from", "bulk-count", "bulk-reach", "adopted-from", "emptied", "room-asked", "room-given"),
        *("rate-asked", "rate-lent", "probe", "requested-by"),
    )
)
"""Headers that only workers may set, on records of commands topics."""


def why_unknown(field: str, name: str, known: Collection[str]) -> str:
    """Return why an unknown control field is refused. `name` and `known` are names in the sender's format."""
    if field in ON_FIRINGS:
        return "is set by the scheduler on the messages that it delivers: leave it out"
    return f"is not known{closest(name, known)}"
