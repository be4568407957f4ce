"""The control fields of a command: the one table of their rules, whatever form they came in.

A field is named like its header less the prefix `schedule-`. Native headers and the JSON form both read into a plain
`dict` of field to value by these rules; `command_from` makes the command of it.
"""

from __future__ import annotations

import binascii
import difflib
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from light_scheduler.durations import parse_duration
from light_scheduler.model import REJECT_PAST

from .instants import parse_instant

CONTROL_PREFIX = "schedule-"
"""What the names of all headers that are the scheduler's begin with."""

Parse = Callable[[str], Any]

LONGEST_DURATION = 10_000 * 31_557_600_000
"""10,000 years, in ms."""

_MAX_SHOWN = 100
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@lru_cache(maxsize=4096)
def parse_tenant(text: str) -> str:
    """Return a legal tenant name. Raises ValueError for another."""
    if not _TENANT.fullmatch(text):
        raise ValueError(
            f"{shown(text)} is not a tenant name: use 1 to 64 letters, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        )
    return text


@lru_cache(maxsize=4096)
def parse_topic(text: str) -> str:
    """Return a legal Kafka topic name. Raises ValueError for another."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError(f"{shown(text)} is not a topic name: use 1 to 249 letters, digits, '.', '_' and '-'")
    return text


def parse_id(text: str) -> str:
    """Return a legal schedule id, of any length. Raises ValueError for an empty one or one with control characters."""
    # Printable text has no control characters, and the test is native code; only other text is looked at closely.
    if not text or (not text.isprintable() and _CONTROL.search(text)):
        raise ValueError("must not be empty" if not text else f"{shown(text)} has control characters")
    return text


def parse_labels(text: str) -> dict[str, str]:
    """Return the labels of `team=billing,kind=reminder`. Raises ValueError for anything else."""
    pairs = []
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{shown(part)} is not a label: use name=value,name=value")
        pairs.append((name.strip(), value.strip()))
    return labels_of(pairs)


def labels_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return labels by name. Raises ValueError if one has no name, control characters, or comes twice."""
    labels: dict[str, str] = {}
    for name, value in pairs:
        if not name:
            raise ValueError("a label has no name: use name=value,name=value")
        if _CONTROL.search(name) or _CONTROL.search(value):
            raise ValueError(f"label {shown(name)} has control characters")
        if name in labels:
            raise ValueError(f"label {shown(name)} is given twice")
        labels[name] = value
    return labels


def shown(text: str) -> str:
    """Return text as an error message shows it: quoted, and cut short if it is long."""
    return repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r}..."


def _span(text: str) -> int:
    ms = parse_duration(text)
    if ms > LONGEST_DURATION:
        raise ValueError(f"{shown(text)} is longer than 10000 years")
    return ms


def _on_past(text: str) -> int | None:
    if text == "fire":
        return None
    if text == "reject":
        return REJECT_PAST
    try:
        return _span(text)
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


def _command(text: str) -> str:
    if text in COMMANDS:
        return text
    if text in COMMANDS_NOT_BUILT:
        raise ValueError(f"this version does not have the command {text}; it has {' and '.join(COMMANDS)}")
    raise ValueError(f"{shown(text)} is not a command; there are {', '.join(COMMANDS)}{closest(text, COMMANDS)}")


def parse_base64(text: str) -> bytes:
    """Return the bytes of standard base64, padded, without line breaks. Raises ValueError for anything else."""
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not base64: {error}") from None
    if binascii.b2a_base64(data, newline=False).decode() != text:
        # Bits that the last character has to spare must be zero: else two texts would mean the same bytes.
        raise ValueError(f"{shown(text)} is not base64 in its one canonical form")
    return data


def closest(name: str, known: Collection[str]) -> str:
    """Return `; did you mean X?` if something known is like a name, or ends in it as a path does, else nothing."""
    matches = [one for one in known if one.endswith(f".{name}")] or difflib.get_close_matches(
        name[:_MAX_SHOWN], known, n=1
    )
    return f"; did you mean {matches[0]}?" if matches else ""


class Rule(NamedTuple):
    """How one field is read from text, and where the JSON form has it.

    `types` are the JSON types that it may have there; a number stands for its decimal text.
    """

    parse: Parse
    json_path: str
    types: tuple[str, ...]
    summary: str


COMMANDS = ("schedule", "cancel")
COMMANDS_NOT_BUILT = ("pause", "resume", "trigger", "reschedule", "complete")

_STRING = ("string",)
_NUMBER = ("integer", "string")

RULES: dict[str, Rule] = {
    "command": Rule(_command, "command", _STRING, "schedule (default) or cancel"),
    "id": Rule(parse_id, "id", _STRING, "Identity within the tenant; default: the key."),
    "tenant": Rule(parse_tenant, "tenant", _STRING, "Whose schedule it is; default: default."),
    "at": Rule(parse_instant, "trigger.at", _NUMBER, "Instant: UTC epoch ms, or RFC 3339 with an offset."),
    "after": Rule(_span, "trigger.after", _NUMBER, "Duration from the record's timestamp: ms, 15m, PT15M."),
    "target-topic": Rule(parse_topic, "target.topic", _STRING, "Topic that the message goes to."),
    "target-key": Rule(str.encode, "target.key", ("string", "null"), "Key of the message; default: the entity key."),
    "target-key-base64": Rule(parse_base64, "target.key-base64", _STRING, "Key of the message, as base64."),
    "target-partition": Rule(_integer(0, 2**31 - 1), "target.partition", _NUMBER, "Partition of the message."),
    "target-partition-key": Rule(
        str.encode, "target.partition-key", _STRING, "Key that chooses the partition in place of the message's own."
    ),
    "ttl": Rule(_span, "ttl", _NUMBER, "Duration after due from which the message is not delivered."),
    "labels": Rule(parse_labels, "labels", ("object", "string"), "Names and values to find schedules by."),
    "priority": Rule(_integer(0, 255), "priority", _NUMBER, "0 (first) to 255 among what is due in the same instant."),
    "on-past": Rule(_on_past, "on-past", _NUMBER, "If due has passed: fire (default), reject, or a grace."),
    "on-conflict": Rule(
        _choice("replace", "keep", "fail"), "on-conflict", _STRING, "If the id exists: replace (default), keep, fail."
    ),
    "expected-version": Rule(
        _integer(1, 2**63 - 1), "expected-version", _NUMBER, "Version that the schedule must have now."
    ),
    "reply-topic": Rule(parse_topic, "reply-topic", _STRING, "Topic that the result goes to."),
    "correlation-id": Rule(str.encode, "correlation-id", _STRING, "Comes back with the result."),
}

NOT_BUILT = frozenset(
    {
        *("every", "mode", "cron", "cron-dialect", "timezone", "backoff"),
        *("start", "end", "max-firings", "jitter", "misfire", "misfire-grace", "paused"),
        *("ack-timeout", "max-attempts", "overlap", "firing-id", "attempt", "completion"),
    }
)
"""Fields of the published surface that this version does not have yet."""

ON_FIRINGS = frozenset({"due", "fired-at", "sequence", "version", "source-topic", "source-partition", "source-offset"})
"""Fields that only firings have."""


def why_unknown(field: str, spelled: str, known: Collection[str]) -> str:
    """Return why a control field without a rule is refused; `spelled` and `known` are as its sender writes names."""
    if field in NOT_BUILT:
        return "this version does not have it"
    if field in ON_FIRINGS:
        return "is set by the scheduler on the messages that it delivers, not by senders"
    return f"is not known{closest(spelled, known)}"
