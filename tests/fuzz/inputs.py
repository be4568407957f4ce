"""Where inputs come from: anything at all, and what is meant, damaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from light_scheduler.wire.fields import CONTROL_PREFIX, RULES

AT = 1_767_225_600_000

TEXTS = (
    *("", "0", "-1", "1767225600000", "1767225600", "9" * 70, "2026-01-01T00:00:00Z", "2026-06-30T23:59:60.5+23:59"),
    *("250ms", "90s", "1.5h", "7d", "PT15M", "P1W2DT3H4M5.678S", "99999999999999999d", "1e9s"),
    *("*/5 * * * *", "0 0 29 2 *", "5 4 * * sun,1-3/2", "0 30 9 ? * 6#3 2027/2", "0 0 12 L-3W * ?", "0 0 9 1W * *"),
    *("0 5 * * *|8 10 L * 1", "@daily", "0-59/7 22-2 31 FEB MON-FRI/2", "0 0 0 31 4,6 ? 9999", "* * * * * * 1970-2099"),
    *("UTC", "Europe/Berlin", "../../etc/passwd", "America/Scoresbysund", "Australia/Lord_Howe"),
    *("1s,2s,4s,16s", "initial=5s factor=2 max=1h attempts=50 jitter=0.1", "initial=1 factor=1000 attempts=1000000"),
    *("team=billing,kind=reminder", "=,=", "a=b,a=c", "order-1@1767225600000", "@", "a@b@1", "aGVsbG8=", "aGVsbG9="),
    *(
        "schedule",
        "cancel",
        "pause",
        "resume",
        "trigger",
        "reschedule",
        "complete",
        "extend",
        "success",
        "failure",
        "true",
    ),
    *("fixed-rate", "fixed-delay", "quartz", "cron4j", "spring", "unix", "coalesce", "skip", "all", "queue", "keep"),
    *("fire", "reject", "replace", "fail", "target", "ten\u0430nt", "\u0661\u0662", "a\0b", "\u202e", "\U0001f600"),
)
"""Values that some field takes, and some that look like it."""


class Record(NamedTuple):
    """A record as a worker reads it."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    partition: int = 0
    offset: int = 42
    timestamp: int = AT


@st.composite
def damaged(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds after a few edits: bytes overwritten, inserted, left out, or repeated."""
    value = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(value)))
        end = min(len(value), start + draw(st.integers(0, 8)))
        match draw(st.integers(0, 3)):
            case 0:
                value[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
            case 1:
                value[start:start] = draw(st.binary(min_size=1, max_size=8))
            case 2:
                del value[start:end]
            case 3:
                value[start:start] = value[start:end] * draw(st.sampled_from((1, 2, 50)))
    return bytes(value)


texts = st.one_of(
    st.sampled_from(TEXTS),
    damaged([text.encode() for text in TEXTS]).map(lambda value: value.decode(errors="replace")),
    st.text(max_size=40),
    st.text("0123456789*/,-?LW#|@ :TZPMSDH.=abcMONJAN", max_size=40),
)


def like(*meant: str) -> st.SearchStrategy[str]:
    """Texts of all sorts, half of them made from what is meant."""
    return damaged([text.encode() for text in meant]).map(lambda value: value.decode(errors="replace")) | texts


maybe_bytes = st.none() | st.binary(max_size=40)
header_values = st.none() | texts.map(lambda text: text.encode()) | st.binary(max_size=24)
header_names = st.sampled_from([CONTROL_PREFIX + field for field in RULES]) | st.sampled_from(
    ["content-type", "schedule-due", "schedule-", "schedule-aft", "Schedule-At", "traceparent", ""]
)
headers = st.lists(st.tuples(header_names | st.text(max_size=12), header_values), max_size=8)


MEANT: tuple[tuple[tuple[str, bytes], ...], ...] = (
    (("schedule-at", b"1767225600000"), ("schedule-ttl", b"5m"), ("schedule-priority", b"7")),
    (
        ("schedule-every", b"1s"),
        ("schedule-max-firings", b"3"),
        ("schedule-jitter", b"5"),
        ("schedule-misfire", b"all"),
    ),
    (("schedule-cron", b"0 9 * * *"), ("schedule-timezone", b"Europe/Berlin"), ("schedule-end", b"1867225600000")),
    (("schedule-backoff", b"1s,2s,4s"), ("schedule-reply-topic", b"answers"), ("schedule-correlation-id", b"\xff")),
    (("schedule-every", b"1"), ("schedule-mode", b"fixed-delay"), ("schedule-ack-timeout", b"5s")),
)
"""Headers of good schedules, save their target."""


@st.composite
def commands(draw: st.DrawFn) -> Record:
    """Records whose headers are those of commands: good ones, and some with values of all sorts."""
    target = ("schedule-target-topic", b"reminders")
    given: list[tuple[str, bytes | None]] = [target, *draw(st.sampled_from(MEANT))] if draw(st.booleans()) else []
    if not given or draw(st.booleans()):
        given += draw(headers)
    return Record(draw(maybe_bytes), draw(maybe_bytes), given, timestamp=draw(st.sampled_from((AT, -1, 0, 2**62))))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
