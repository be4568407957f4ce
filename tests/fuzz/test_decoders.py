"""Inputs of all sorts for every decoder: `pytest tests/fuzz --fuzz-inputs 1000000 --fuzz-seed 2` tries others."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from support.foreign import FOREIGN, etf1_headers

from light_scheduler.engine import FiringRules, Limits
from light_scheduler.engine.cron import compile_cron, quartz
from light_scheduler.errors import FormatError, InvalidCommand
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.cycle.budget import TurnBudget
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.model import Outcome, TopicNames
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire import dialect_named, parse_instant
from light_scheduler.wire.backoff import parse_backoff
from light_scheduler.wire.fields import parse_labels
from light_scheduler.wire.state import decode_entry, decode_progress

from .decoders import DECODERS, Decoder, foreign_records, json_commands
from .inputs import AT, Record, commands

pytestmark = pytest.mark.timeout(3_600)

SOON_S = 1.0
"""Processor time within which any small input is dealt with; most take some microseconds."""

T = TypeVar("T")

NAMES = TopicNames("app")
MEBIBYTE = 1 << 20


SHARES = len(DECODERS) + 2


def fuzzing(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Set how many inputs a test tries; the same ones each time, for a seed."""
    tried = settings(
        max_examples=max(1, int(request.config.getoption("fuzz_inputs")) // SHARES),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    chosen = seed(request.config.getoption("fuzz_seed"))
    return lambda test: chosen(tried(test))


def soon(deed: Callable[[], T]) -> T:
    """Do something; if it takes long, it is done again, for the collector of garbage may have come between."""
    for _ in range(3):
        begun = time.thread_time()
        result = deed()
        if time.thread_time() - begun < SOON_S:
            return result
    raise AssertionError(f"took over {SOON_S:g} s")


def refusal_of(read: Callable[[], object], declared: type[Exception] | tuple[type[Exception], ...]) -> str | None:
    """Return why an input is refused, or None if it is taken; an error that is not declared passes."""
    try:
        read()
    except declared as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_a_decoder_takes_an_input_or_refuses_it_with_its_own_error(
    decoder: Decoder, request: pytest.FixtureRequest
) -> None:
    seen: Counter[bool] = Counter()

    @fuzzing(request)
    @given(decoder.inputs)
    def try_it(value: Any) -> None:
        reason = soon(lambda: refusal_of(lambda: decoder.read(value), decoder.refusal))
        assert reason != ""
        seen[reason is None] += 1

    try_it()
    assert seen[True] > 0, "no input got past the decoder's first check: it was not tried at all"
    assert seen[False] > 0, "no input was refused"


class _AnyTopic(dict[str, TargetTopic]):
    def __missing__(self, name: str) -> TargetTopic:
        return TargetTopic(1 if name == NAMES.commands else 4, 1_048_588, None, 0.0)


@pytest.mark.parametrize(
    ("dialect", "records"),
    [
        ("native", commands()),
        ("json", json_commands()),
        *((foreign.dialect, foreign_records(name)) for name, foreign in FOREIGN.items()),
    ],
)
def test_a_command_is_carried_out_or_visibly_rejected_and_what_it_made_can_fire(
    dialect: str, records: st.SearchStrategy[Record], request: pytest.FixtureRequest
) -> None:
    context = CycleContext(
        NAMES.commands,
        0,
        dialect_named(dialect),
        NAMES,
        Limits(1_000_000, 512, frozenset({NAMES.history})),
        FiringRules(),
        _AnyTopic(),
    )

    def cycle_at(table: ScheduleTable, now: int) -> tuple[Cycle, Overlay, RecordBatches]:
        overlay, batches = Overlay(table), RecordBatches(now)
        return Cycle(context, overlay, batches, now), overlay, batches

    def take(table: ScheduleTable, record: Record) -> None:
        cycle, overlay, batches = cycle_at(table, AT)
        cycle.take_all([record])
        cycle.answer({})
        overlay.apply(changelog_offset=1, complete_at=AT)
        assert cycle.outcomes.total() + cycle.forwarded == 1
        topics = {topic for topic, _ in batches.places}
        assert (NAMES.dead_letters in topics) is (cycle.outcomes[Outcome.REJECTED] == 1)
        assert (NAMES.history in topics) is bool(cycle.events)

    def fire(table: ScheduleTable, now: int) -> None:
        cycle, overlay, _ = cycle_at(table, now)
        cycle.fire_due(overlay.due(now, 50, MEBIBYTE), {}, TurnBudget(50, MEBIBYTE))
        overlay.apply(changelog_offset=1, complete_at=now)

    @fuzzing(request)
    @given(st.lists(records, min_size=1, max_size=3))
    def try_it(sent: list[Record]) -> None:
        table = ScheduleTable(MemoryStore())
        for record in sent:
            soon(partial(take, table, record))
        for later in (0, 1, 90_000, 400 * 86_400_000):
            soon(partial(fire, table, AT + later))

    try_it()


def _native(*headers: tuple[str, bytes | None]) -> Callable[[], object]:
    return lambda: dialect_named("native").decode(Record(b"k", b"x", [("schedule-target-topic", b"t"), *headers]))


def _json(value: bytes) -> Callable[[], object]:
    return lambda: dialect_named("json").decode(Record(b"k", value, []))


def _salvage(dialect: str, record: Record) -> Callable[[], object]:
    return lambda: dialect_named(dialect).salvage(record)


def _foreign(dialect: str, value: bytes, *headers: tuple[str, bytes | None]) -> Callable[[], object]:
    return lambda: dialect_named(dialect).decode(Record(b"k", value, headers))


MONSTROUS: dict[str, Callable[[], object]] = {
    "deep JSON": _json(b'{"payload":{"json":' + b"[" * MEBIBYTE),
    "deep JSON objects": _json(b'{"a":' * (MEBIBYTE // 5)),
    "deep JSON, salvaged": _salvage("json", Record(b"k", b'{"a":' * (MEBIBYTE // 5), [])),
    "long JSON number": _json(b'{"trigger":{"at":' + b"9" * MEBIBYTE + b"}}"),
    "long JSON text": _json(b'{"id":"' + b"a" * MEBIBYTE + b'"}'),
    "many JSON members": _json(b"{" + b",".join(b'"a%d":1' % n for n in range(60_000)) + b"}"),
    "long instant": _native(("schedule-at", b"9" * MEBIBYTE)),
    "long duration": _native(("schedule-after", b"PT" + b"1" * MEBIBYTE + b"S")),
    "long cron": _native(("schedule-cron", b",".join([b"1"] * MEBIBYTE))),
    "long time zone": _native(("schedule-cron", b"* * * * *"), ("schedule-timezone", b"a/" * MEBIBYTE)),
    "many intervals": _native(("schedule-backoff", b",".join([b"1"] * (MEBIBYTE // 2)))),
    "long unknown header": _native(("schedule-" + "a" * MEBIBYTE, b"1")),
    "many headers": _native(*[("h", b"v")] * 50_000),
    "deep JSON of skyuk": _foreign("skyuk", b'{"time":' + b"[" * MEBIBYTE),
    "long base64 of skyuk": _foreign("skyuk", b'{"time":1,"topic":"t","key":"' + b"A" * MEBIBYTE + b'#"}'),
    "long time of skyuk": _foreign("skyuk", b'{"topic":"t","time":' + b"9" * MEBIBYTE + b"}"),
    "Avro bytes of 4 Gi": _foreign("skyuk", b"\x02\x02t" + b"\xff\xff\xff\xff\x1f"),
    "Avro map of 4 Gi": _foreign("skyuk", b"\x02\x02t\x02k\x00" + b"\xff\xff\xff\xff\x1f"),
    "Avro blocks without end": _foreign("skyuk", b"\x02\x02t\x02k\x00" + b"\x02\x00\x00" * (MEBIBYTE // 3)),
    "long Avro number": _foreign("light4j", b"\xff" * MEBIBYTE),
    "long epoch": _foreign("etf1", b"x", ("scheduler-epoch", b"9" * MEBIBYTE)),
    "long version": _foreign("karafka", b"x", ("schedule_schema_version", b"1." * MEBIBYTE)),
    "many headers of etf1": _foreign("etf1", b"x", *[("h", b"v")] * 50_000, *etf1_headers(AT)),
    "MessagePack array of 4 Gi": lambda: decode_entry(b"\x01\xdd\xff\xff\xff\xff"),
    "MessagePack map of 4 Gi": lambda: decode_entry(b"\x01\x92\xdf\xff\xff\xff\xff"),
    "MessagePack bytes of 4 Gi": lambda: decode_progress(b"\x01\x9d\xc6\xff\xff\xff\xff"),
    "deep MessagePack": lambda: decode_entry(b"\x01" + b"\x91" * MEBIBYTE),
    "deep MessagePack in progress": lambda: decode_progress(b"\x01\x9d\x01\x01" + b"\x91" * MEBIBYTE),
    "day that never comes": lambda: compile_cron("0 0 30 2 *").next_after(AT),
    "year that is over": lambda: compile_cron("0 0 0 1 1 ? 1970", "quartz").next_after(AT),
    "years many times over": lambda: quartz.parse("0 0 0 1 1 ? " + ",".join(["*", "*/2", "1970-9999"] * 5_000)),
    "long fraction": lambda: parse_instant("2026-01-01T00:00:00." + "1" * MEBIBYTE + "Z"),
    "long backoff part": lambda: parse_backoff("initial=" + "1" * MEBIBYTE),
    "many labels": lambda: parse_labels("a=b," * (MEBIBYTE // 4)),
}


@pytest.mark.parametrize("name", MONSTROUS)
def test_a_monstrous_input_takes_neither_long_nor_much_memory(name: str) -> None:
    def refusal() -> str | None:
        return refusal_of(MONSTROUS[name], (InvalidCommand, FormatError, ValueError))

    reason = soon(refusal)
    tracemalloc.start()  # not before: it takes more time than what it watches
    try:
        refusal()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * MEBIBYTE
    assert len(reason or "") < 3 * MEBIBYTE
