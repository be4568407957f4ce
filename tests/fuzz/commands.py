"""Command records that nobody should send: of every kind, of any size, with values that no field takes."""

from __future__ import annotations

from hypothesis import strategies as st

from light_scheduler.model import Headers
from light_scheduler.wire.fields import COMMANDS as VERBS

from .inputs import AT, MEANT, Record, headers, texts

LARGEST = 1_048_588 - 61 - 25
"""Bytes that the parts of a record may have if its topic takes what Kafka's topics do; a batch and a record have some
of their own."""
PART_BYTES = 6
"""What each header needs besides its name and value."""

ODD_TOPICS = (
    *("", ".", "..", "a/b", "a b", "x" * 249, "x" * 250, "topic\0", "t\u00f6pic", "missing", "Targets"),
    *("__consumer_offsets", "__transaction_state", "__share_group_state"),
    *("app-commands", "app-history", "app-schedules-changelog", "app-dead-letters", "app-results", "app-forecast"),
)
GOOD_TOPICS = ("targets", "targets", "targets", "replies")
ODD_NUMBERS = (
    "-1",
    "0",
    "1",
    "4294967295",
    "2147483648",
    "9223372036854775807",
    "9" * 30,
    "1e3",
    "+1",
    " 1",
    "0x1",
    "NaN",
)
IDS = ("a", "b", "ab", "", "*", "a*", "**", "*a", "a" * 512, "a" * 513, "\u20ac" * 171, "a\0b", "a/b", "..")
LABELS = (
    "",
    "*",
    "kind=reminder",
    "kind=",
    "=",
    "kind=reminder,kind=other",
    ",".join(f"k{n}=v{n}" for n in range(300)),
)


class Repeated(bytes):
    """Many bytes that are all the same, and do not fill the screen when a test fails."""

    def __repr__(self) -> str:
        return f"{bytes(self[:1])!r} * {len(self)}"


topics = st.sampled_from(GOOD_TOPICS) | st.sampled_from(ODD_TOPICS) | texts
numbers = st.sampled_from(ODD_NUMBERS) | texts
ids = st.sampled_from(IDS) | texts


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _header(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, bytes | None]]:
    return st.tuples(st.just(name), values.map(_bytes) | st.none() | st.just(b"\xff\xfe"))


huge = st.sampled_from((LARGEST, LARGEST - 200, 950_000, LARGEST // 2, 300_000))
"""Sizes: all of what a record may have, or a part of it; more than lanes put into a batch of their own, or less."""

controls = st.one_of(
    _header("schedule-command", st.sampled_from(sorted(VERBS)) | texts),
    _header("schedule-id", ids),
    _header("schedule-tenant", st.sampled_from(("default", "acme", "", "*")) | texts),
    _header("schedule-target-topic", topics),
    _header("schedule-reply-topic", topics),
    _header("schedule-target-partition", numbers),
    _header("schedule-expected-version", numbers),
    _header("schedule-attempt", numbers),
    _header("schedule-max-firings", numbers),
    _header("schedule-labels", st.sampled_from(LABELS)),
    _header("schedule-firing-id", ids.map(lambda id: f"{id}@{AT}")),
    _header("schedule-at", st.sampled_from(("0", str(AT), str(AT + 5_000), "253402300799999"))),
    _header("schedule-after", st.sampled_from(("0", "1s", "1", "99999999d"))),
    _header("schedule-every", st.sampled_from(("1s", "300ms", "0", "99999999d"))),
)
"""Headers of commands, each with values that it takes and others."""

marks = st.one_of(
    _header(
        "schedule-forwarded-from",
        st.builds("{}:{}:{}".format, *(st.sampled_from(("0", "1", "2", "7", *ODD_NUMBERS)),) * 3)
        | st.builds("{0}:{0}:{0}:{1}{0}:{2}".format, st.sampled_from("0179"), st.sampled_from("?="), st.just("f" * 64))
        | texts,
    ),
    _header(
        "schedule-bulk-count",
        st.builds("{}:{}:{}".format, *(st.sampled_from(("0", "1", "2", "7", *ODD_NUMBERS)),) * 3) | texts,
    ),
)
"""What lanes alone write, as somebody else writes it."""


@st.composite
def large(draw: st.DrawFn) -> Headers:
    """A header that is as large as a record may be, or a part of that."""
    name = draw(
        st.sampled_from(("schedule-labels", "schedule-id", "schedule-correlation-id", "schedule-reply-topic", "h"))
    )
    size = draw(huge)
    if name == "schedule-labels" and draw(st.booleans()):
        return [(name, Repeated(b"a=b," * (size // 4)))]
    return [(name, Repeated(b"x" * size))]


@st.composite
def hostile_commands(draw: st.DrawFn) -> Record:
    """One record; none is larger than a broker takes."""
    given: Headers = list(draw(st.sampled_from(MEANT))) if draw(st.booleans()) else []
    given += draw(st.lists(controls, max_size=6))
    if draw(st.booleans()):
        given = [("schedule-target-topic", b"targets"), *given]
    if draw(st.integers(0, 3)) == 0:
        given += draw(headers)
    if draw(st.integers(0, 3)) == 0:
        given.append(draw(marks))
    if draw(st.integers(0, 3)) == 0:
        given += draw(large())
    key = draw(st.none() | st.binary(max_size=8) | ids.map(_bytes))
    value = draw(st.none() | st.binary(max_size=40))
    if draw(st.integers(0, 7)) == 0:
        key = Repeated(b"k" * draw(huge))
    if draw(st.integers(0, 7)) == 0:
        value = Repeated(b"v" * draw(huge))
    if draw(st.booleans()):  # each header once: most are refused for less otherwise
        given = list(dict(given).items())
    return _fitting(key, value, given)


@st.composite
def bulk_commands(draw: st.DrawFn) -> Record:
    """Bulk commands, good ones and large ones."""
    given: Headers = [
        ("schedule-command", draw(st.sampled_from((b"cancel", b"pause", b"resume", b"trigger", b"reschedule")))),
        ("schedule-id", draw(st.sampled_from((b"*", b"a*", b"sane*")))),
    ]
    if draw(st.booleans()):
        given.append(("schedule-reply-topic", draw(topics).encode(errors="surrogatepass")))
    if draw(st.booleans()):
        given += draw(large())
    elif draw(st.booleans()):
        given.append(("schedule-labels", draw(st.sampled_from(LABELS)).encode()))
    key = Repeated(b"k" * draw(huge)) if draw(st.booleans()) else draw(st.none() | st.binary(max_size=8))
    return _fitting(key, draw(st.sampled_from((b"", None, b"x"))), given)


def _fitting(key: bytes | None, value: bytes | None, given: Headers) -> Record:
    """Cut what would make a record too large for its topic: the value first, then the key, then headers."""
    room = LARGEST
    kept: Headers = []
    for name, content in given:
        size = len(name.encode(errors="replace")) + len(content or b"") + PART_BYTES
        if size <= room:
            kept.append((name, content))
            room -= size
    key = None if key is None else type(key)(key[:room])
    room -= len(key or b"")
    return Record(key, None if value is None else type(value)(value[:room]), kept)


def as_read(record: Record) -> Record:
    """Return a record as a client reads it, in whose parts nothing is special."""

    def plain(part: bytes | None) -> bytes | None:
        return None if part is None else bytes(part)

    given = [(name, plain(content)) for name, content in record.headers]
    return Record(plain(record.key), plain(record.value), given)
