"""Everything that reads what others wrote, with the one error that it may raise and inputs for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st
from support.foreign import FOREIGN

from light_scheduler.durations import parse_duration
from light_scheduler.engine import preview
from light_scheduler.engine.cron import CronError, compile_cron
from light_scheduler.errors import ConfigurationError, FormatError, InvalidCommand
from light_scheduler.model import (
    Acknowledgement,
    Awaited,
    Backoff,
    Bounds,
    Cron,
    DeadLetter,
    DeadLetterCause,
    Entry,
    FixedDelay,
    FixedRate,
    HistoryEvent,
    Once,
    Outcome,
    Progress,
    ReplyTo,
    Result,
    Schedule,
    ScheduleCommand,
    Target,
)
from light_scheduler.model.delay import DelayRule, RuleError, parse_rule
from light_scheduler.model.outcome import EventType
from light_scheduler.settings import load_settings
from light_scheduler.tables import Checkpoint, MemoryStore, ScheduleTable
from light_scheduler.tables.layout import CHECKPOINT_KEY
from light_scheduler.web.commands.requested import requested
from light_scheduler.web.preview import command_of
from light_scheduler.wire import (
    decode_dead_letter,
    decode_history,
    decode_result,
    dialect_named,
    encode_dead_letter,
    encode_history,
    encode_result,
    firing_headers,
    parse_firing,
    parse_instant,
)
from light_scheduler.wire import delays as delay_records
from light_scheduler.wire.dialects.compatible import CompatibleDialect
from light_scheduler.wire.fields import RULES
from light_scheduler.wire.state import (
    decode_entry,
    decode_position,
    decode_progress,
    encode_entry,
    encode_position,
    encode_progress,
)

from .inputs import AT, Record, commands, damaged, header_values, json_values, like, maybe_bytes, texts

HORIZON = 253_402_300_799_999


@dataclass(frozen=True)
class Decoder:
    """`read` takes an input, or raises `refusal` and nothing else."""

    name: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any], object]
    refusal: type[Exception]


def _entry(trigger: Any, **fields: Any) -> Entry:
    schedule = Schedule("acme", "a", 1, trigger, Target("t", b"k"), b"x", [("h", b"\xff")], 3, 42, AT, **fields)
    awaited = (Awaited(AT, 1, 1, AT + 1_000, AT),)
    return Entry(schedule, Progress(AT, 42, awaited=awaited, triggered=(AT + 5,)))


ENTRIES = [
    _entry(Once(AT), labels={"a": "b"}),
    _entry(FixedRate(1_000, AT), bounds=Bounds(end=AT + 5)),
    _entry(FixedDelay(1_000), acknowledgement=Acknowledgement(5_000, 3)),
    _entry(Cron("0 0 * * *", "unix", "Europe/Berlin"), ttl=5),
    _entry(Backoff((1, 2, 4)), priority=7),
]
LETTER = DeadLetter(
    DeadLetterCause.REFUSED,
    "no",
    None,
    "acme",
    "a",
    AT,
    AT,
    "t",
    3,
    42,
    b"k",
    b"x",
    [("h", b"v"), ("n", None)],
    original_due=AT,
    schedule_key=b"\xff",
)
EVENT = HistoryEvent(EventType.FIRED, "acme", "a", 1, AT, AT, 1, 1, "t", None, 3)
RESULT = Result("schedule", "acme", "a", Outcome.SCHEDULED, version=1, next_due=AT, partition=3, offset=42)
RULE = DelayRule("later", "a", 5_000, "b")
JSON_COMMANDS = [
    json.dumps(document).encode()
    for document in (
        {"id": "a", "trigger": {"at": AT}, "target": {"topic": "t", "headers": {"n": "v"}}, "payload": {"text": "x"}},
        {"trigger": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, "target": {"topic": "t"}, "payload": None},
        {"trigger": {"backoff": {"initial": 5, "factor": 2}}, "target": {"topic": "t"}, "payload": {"base64": "eA=="}},
        {"command": "complete", "firing_id": "a@1767225600000", "attempt": 1, "completion": "success"},
        {"command": "extend", "firing_id": "a@1767225600000", "attempt": 1, "ack_timeout": "5m"},
        {
            "trigger": {"every": "1s"},
            "target": {"topic": "t", "key": None},
            "labels": {"a": "b"},
            "payload": {"json": [1]},
        },
    )
]


@st.composite
def json_commands(draw: st.DrawFn) -> Record:
    """Records whose value is JSON, of any kind, of the right members, or damaged."""
    if draw(st.booleans()):
        value = draw(damaged([*JSON_COMMANDS, b'{"a":' * 50, b"[" * 200]))
    else:
        document: Any = {}
        paths = [rule.json_path for rule in RULES.values()] + ["key", "payload", "payload.json", "target.headers"]
        for path in draw(st.lists(st.sampled_from(paths), max_size=6, unique=True)):
            group, _, name = path.rpartition(".")
            place = document.setdefault(group, {}) if group else document
            if isinstance(place, dict):
                place[name] = draw(json_values)
        value = json.dumps(document).encode()
    return Record(draw(maybe_bytes), value, draw(st.just([]) | st.lists(st.tuples(texts, header_values), max_size=2)))


@st.composite
def foreign_records(draw: st.DrawFn, name: str) -> Record:
    """Records of another scheduler's producers, with headers and values that are damaged, left out or added."""
    foreign = FOREIGN[name]
    meant = draw(
        st.sampled_from([foreign.schedule(AT + 5_000, b"payload", 42, AT), foreign.cancel(42), foreign.tombstone(42)])
    )

    def perhaps(data: bytes | None) -> bytes | None:
        return data if data is None or draw(st.integers(0, 3)) else draw(damaged([data]) | st.none())

    kept = [(header, perhaps(value)) for header, value in meant.headers if draw(st.integers(0, 9))]
    more = draw(st.just([]) | st.lists(st.tuples(texts, header_values), max_size=2))
    return Record(perhaps(meant.key), perhaps(meant.value), [*kept, *more])


@st.composite
def foreign_messages(draw: st.DrawFn, name: str) -> Record:
    """Messages as the consumers of another scheduler expect them, damaged."""
    foreign = FOREIGN[name]
    key, value, headers = foreign.expected(AT + 5_000, b"payload", foreign.schedule(AT + 5_000, b"payload", 42, AT))

    def perhaps(data: bytes | None) -> bytes | None:
        return data if data is None or draw(st.integers(0, 3)) else draw(damaged([data]) | st.none())

    kept = [(header, perhaps(given)) for header, given in headers if draw(st.integers(0, 9))]
    more = draw(st.just([]) | st.lists(st.tuples(texts, header_values), max_size=2))
    return Record(perhaps(key), perhaps(value), [*kept, *more])


def _read_message(dialect: str) -> Callable[[Record], object]:
    form = dialect_named(dialect)
    assert isinstance(form, CompatibleDialect)

    def read(record: Record) -> object:
        if (traced := form.traced(record.key, record.value, list(record.headers))) is None:  # never raises
            raise FormatError("it tells of no schedule")
        return traced

    return read


def _read_command(dialect: str) -> Callable[[Record], object]:
    form = dialect_named(dialect)

    def read(record: Record) -> object:
        form.salvage(record)  # never raises
        return form.decode(record)

    return read


def _read_body(told: dict[str, str]) -> Callable[[bytes | None], object]:
    def read(body: bytes | None) -> object:
        asked = requested(body or b"", told, lambda _: [], {"id": "made up"})
        # What is sent is read again by a worker, with the key that the record has.
        sent = asked.record(ReplyTo("results", b"c-1"))
        return dialect_named("native").decode(Record(sent.key, sent.value, sent.headers))

    return read


def _preview_body(body: bytes | None) -> object:
    command = command_of(body or b"", AT)
    assert isinstance(command, ScheduleCommand)
    return preview(command, 5)


def _state(seeds: list[bytes]) -> st.SearchStrategy[bytes]:
    def body(value: object) -> bytes:
        return b"\x01" + msgspec.msgpack.encode(value)

    packed = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=8) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=16),
        max_leaves=24,
    )
    return damaged(seeds) | st.binary(max_size=60) | packed.map(body)


def _stored_checkpoint() -> bytes:
    store = MemoryStore()
    ScheduleTable(store).write({}, Checkpoint(42, 7, 3, "id", AT))
    stored = store.get(CHECKPOINT_KEY)
    assert stored is not None
    return stored


def _checkpoint(raw: bytes) -> object:
    store = MemoryStore()
    store.write({CHECKPOINT_KEY: raw})
    return ScheduleTable(store).checkpoint


@st.composite
def letters(draw: st.DrawFn) -> Record:
    key, value, headers = encode_dead_letter(LETTER, "commands")
    return Record(key, value, _with_damage(draw, headers))


@st.composite
def firings(draw: st.DrawFn) -> Record:
    entry = draw(st.sampled_from(ENTRIES))
    return Record(b"k", b"x", _with_damage(draw, firing_headers(entry, AT, b"commands")))


def _with_damage(draw: st.DrawFn, headers: list[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    headers = list(headers)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(headers) - 1))
        headers[place] = (headers[place][0], draw(header_values))
    return headers[: draw(st.integers(0, len(headers)))] if draw(st.booleans()) else headers


def _cron(dialect: Any) -> Callable[[tuple[str, str, int]], object]:
    def read(given: tuple[str, str, int]) -> object:
        expression, timezone, instant = given
        following = compile_cron(expression, dialect, timezone).next_after(instant)
        assert following is None or instant < following <= HORIZON
        return following

    return read


_zones = st.just("UTC") | st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Africa/Monrovia"]) | texts
_instants = st.integers(0, HORIZON)


def _setting(name: str) -> Callable[[str], object]:
    return lambda text: load_settings({name: text}, environment={})


TOLD = [
    {"command": "schedule", "tenant": "acme"},
    *({"command": name, "tenant": "acme", "id": "a"} for name in ("pause", "reschedule", "complete", "extend")),
]
BODIES = [
    b'{"key": "k", "expected_version": 1}',
    b'{"trigger": {"every": "5m", "start": 1767225600000}, "jitter": 5, "misfire": "skip"}',
    b'{"firing_id": "a@1767225600000", "attempt": 2, "completion": "failure"}',
    b'{"firing_id": "a@1767225600000", "attempt": 2, "ack_timeout": "5m"}',
]
bodies = json_commands().map(lambda record: record.value) | damaged(BODIES)
FIELDS = {
    "id": ("order-1",),
    "tenant": ("acme.eu",),
    "labels": ("team=billing,kind=reminder",),
    "backoff": ("1s,2s,4s", "initial=5s factor=2 max=1h attempts=50 jitter=0.1"),
    "firing-id": ("order-1@1767225600000",),
    "target-key-base64": ("aGVsbG8=",),
    "on-past": ("reject", "90s"),
    "priority": ("100",),
}
CRONS = {
    "unix": ("*/15 9-17 * * 1-5", "0 0 13 * 5 30 2027-2029", "@daily", "5 4 29 FEB sun"),
    "cron4j": ("0 5 * * *|8 10 L * 1", "0 22-2 * * *"),
    "quartz": ("0 15 10 ? * 6#3 2027-2029", "0 0 12 L-3W * ?", "0/5 0 0 1 1 ? 1970/9"),
    "spring": ("0 0 9 1W * *", "0 0 0 * * 5L", "@monthly"),
}
SETTINGS = {
    "broker": ("kafka://a:9092,[::1]:9093",),
    "commands_topics": ("a:json,b",),
    "delays": ("later=a:5s:b, last=c:1d:d",),
    "session_timeout": ("6s",),
    "partitions": ("4",),
    "lookback_minutes": ("all", "5"),
}

DECODERS = [
    Decoder("native", commands(), _read_command("native"), InvalidCommand),
    Decoder("json", json_commands(), _read_command("json"), InvalidCommand),
    *(
        Decoder(name, foreign_records(name), _read_command(foreign.dialect), InvalidCommand)
        for name, foreign in FOREIGN.items()
    ),
    *(
        Decoder(f"message of {name}", foreign_messages(name), _read_message(foreign.dialect), FormatError)
        for name, foreign in FOREIGN.items()
        if foreign.dialect != "skyuk"
    ),
    *(Decoder(f"HTTP {told['command']}", bodies, _read_body(told), InvalidCommand) for told in TOLD),
    Decoder("HTTP preview", bodies, _preview_body, InvalidCommand),
    Decoder("state record", _state([encode_entry(entry) for entry in ENTRIES]), decode_entry, FormatError),
    Decoder("progress", _state([encode_progress(entry.progress) for entry in ENTRIES]), decode_progress, FormatError),
    Decoder("position", _state([encode_position(4_711)]), decode_position, FormatError),
    Decoder("checkpoint", _state([_stored_checkpoint()]), _checkpoint, FormatError),
    Decoder(
        "delay rule",
        st.tuples(st.just(b"later") | maybe_bytes, damaged([delay_records.encode_rule(RULE)[1]])),
        lambda given: delay_records.decode_rule(*given),
        FormatError,
    ),
    Decoder(
        "delay position",
        damaged([delay_records.encode_position(delay_records.DelayPosition(42, "id"))]),
        delay_records.decode_position,
        FormatError,
    ),
    Decoder("result", damaged([encode_result(RESULT)]), decode_result, FormatError),
    Decoder("history", damaged([encode_history(EVENT)]), decode_history, FormatError),
    Decoder("dead letter", letters(), decode_dead_letter, FormatError),
    Decoder("firing", firings(), parse_firing, FormatError),
    Decoder("duration", like("250ms", "1.5h", "P1W2DT3H4M5.678S"), parse_duration, ValueError),
    Decoder("instant", like("1767225600000", "2026-06-30T23:59:60.5+00:00"), parse_instant, ValueError),
    *(Decoder(f"field {name}", like(*meant), RULES[name].parse, ValueError) for name, meant in FIELDS.items()),
    Decoder(
        "delay rule as text",
        st.tuples(like("later"), like("a.b"), like("5s"), like("c")),
        lambda given: parse_rule(*given),
        RuleError,
    ),
    *(
        Decoder(f"cron {dialect}", st.tuples(like(*meant), _zones, _instants), _cron(dialect), CronError)
        for dialect, meant in CRONS.items()
    ),
    *(Decoder(f"setting {name}", like(*meant), _setting(name), ConfigurationError) for name, meant in SETTINGS.items()),
]
