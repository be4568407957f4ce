"""Whole lanes against hostile command records: none stops its lane, and a good command after them works.

The lanes are real; their Kafka is that of `simulation`, which refuses what a broker refuses.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from simulation import loop as simulated
from simulation.history import History
from simulation.log import INTERNAL
from simulation.names import COMMANDS, NAMES, REPLIES, TARGET, TARGET_PARTITIONS
from simulation.world import World

from light_scheduler.engine import Limits
from light_scheduler.model import EventType, Headers, Outcome
from light_scheduler.settings import KAFKA_TOPICS
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import FORWARDED_FROM

from .commands import LARGEST, as_read, bulk_commands, hostile_commands
from .decoders import json_commands
from .inputs import AT, Record

pytestmark = pytest.mark.timeout(3_600)

PARTITIONS = 2
SHARE = 60
"""One in so many of the inputs of `--fuzz-inputs` is for each test here: a history takes some ms."""

SENT_AT, SANE_AT, END_S = 1.0, 8.0, 12.0
OWN = {COMMANDS, NAMES.history, NAMES.dead_letters, NAMES.changelog(COMMANDS)}
LIMITS = Limits(1_000_000, 512, KAFKA_TOPICS | OWN)

JSON_COMMAND = ("content-type", b"application/vnd.light-scheduler.command+json")


@dataclass
class Outcomes:
    """What came of records; `failure` is why the worker would have ended."""

    failure: str | None
    outcomes: Counter[Outcome]
    letters: int
    rejections: int
    answers: Counter[bytes | None]
    """Of the topic of answers, by correlation id."""
    fired: Counter[bytes | None]
    """Of the target, by schedule; answers may have been sent there, too."""


def key_of(partition: int) -> bytes:
    """Return the key of a good command for a partition."""
    return next(key for n in range(99) if partition_for(key := b"sane-%d" % n, PARTITIONS) == partition)


SANE = [key_of(partition) for partition in range(PARTITIONS)]


def sane(key: bytes) -> Record:
    headers: Headers = [
        ("schedule-after", b"500"),
        ("schedule-target-topic", TARGET.encode()),
        ("schedule-reply-topic", REPLIES.encode()),
        ("schedule-correlation-id", key),
    ]
    return Record(key, b"x", headers)


def carry_out(records: Sequence[tuple[int, Record]]) -> Outcomes:
    """Have lanes read records, each in its partition, and good ones some seconds later."""

    async def main() -> Outcomes:
        world = World(History(0, 1, PARTITIONS, (), (), ()), limits=LIMITS, settle_s=END_S)
        for number, (partition, record) in enumerate(records):
            world.loop.call_at(SENT_AT + number / 100, world.kafka.send, (COMMANDS, partition), [as_read(record)])
        for partition, key in enumerate(SANE):
            world.loop.call_at(SANE_AT, world.kafka.send, (COMMANDS, partition), [sane(key)])
        await world.happen()
        return outcomes_of(world)

    logging.disable(logging.CRITICAL)
    try:
        return simulated.run(main())
    finally:
        logging.disable(logging.NOTSET)


def outcomes_of(world: World) -> Outcomes:
    def committed(topic: str, partitions: int = 1) -> list[Any]:
        return [
            record
            for partition in range(partitions)
            for record in world.kafka.log((topic, partition)).committed(0, 1 << 40)
        ]

    (node,) = world.nodes.values()
    outcomes: Counter[Outcome] = Counter()
    for lane in node.lanes:
        outcomes += lane.counters.outcomes
    history = Counter(json.loads(record.value)["event"] for record in committed(NAMES.history))
    letters = [dict(record.headers) for record in committed(NAMES.dead_letters)]
    return Outcomes(
        world.failure,
        outcomes,
        sum(letter["dead-letter-cause"] == b"rejected" for letter in letters),
        history[EventType.REJECTED],
        Counter(dict(record.headers).get("schedule-correlation-id") for record in committed(REPLIES)),
        Counter(dict(record.headers).get("schedule-id") for record in committed(TARGET, TARGET_PARTITIONS)),
    )


def check(records: Sequence[tuple[int, Record]]) -> None:
    """Every record has an outcome, whoever is rejected is a dead letter, and the good ones are carried out.

    What looks like a copy of a bulk command has none: its outcome is that of the record that was sent.
    """
    seen = carry_out(records)

    assert seen.failure is None
    for key in SANE:
        assert seen.answers[key] == 1, f"the good command {key!r} was answered {seen.answers[key]} times"
        assert seen.fired[key] == 1, f"the good command {key!r} was delivered {seen.fired[key]} times"
    sent = sum(FORWARDED_FROM not in dict(record.headers) for _, record in records)
    assert seen.outcomes.total() >= sent + len(SANE), f"not every record has an outcome: {seen.outcomes}"
    assert seen.letters == seen.rejections == seen.outcomes[Outcome.REJECTED]


def placed(*records: st.SearchStrategy[Record]) -> st.SearchStrategy[list[tuple[int, Record]]]:
    """Up to five records, each in any partition."""
    return st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.one_of(*records)), min_size=1, max_size=5)


as_json = json_commands().map(lambda record: record._replace(headers=[*record.headers, JSON_COMMAND]))
MIXES = {
    "hostile": placed(hostile_commands()),
    "for many": placed(bulk_commands(), hostile_commands()),
    "json": placed(as_json),
    "all sorts": placed(hostile_commands(), bulk_commands(), as_json),
}


@pytest.mark.parametrize("mix", MIXES)
def test_no_record_stops_its_lane(mix: str, request: pytest.FixtureRequest) -> None:
    tried = settings(
        max_examples=max(1, int(request.config.getoption("fuzz_inputs")) // SHARE // len(MIXES)),
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        phases=[Phase.generate],  # each step of shrinking takes a history in which a lane goes round and round
    )
    chosen = seed(request.config.getoption("fuzz_seed"))
    chosen(tried(given(MIXES[mix])(check)))()


def to_topic(**names: str) -> Headers:
    return [(f"schedule-{name.replace('_', '-')}", topic.encode()) for name, topic in names.items()]


CANCEL_ALL: Headers = [("schedule-command", b"cancel"), ("schedule-id", b"*")]
SIZES = (850_000, 950_000, LARGEST - 100)
"""Of a part of a record: less than lanes put into a batch, more than that, and all that the commands topic takes."""


def labels(size: int) -> bytes:
    return b",".join(b"k%05d=v" % number for number in range(size // 9))


KNOWN: dict[str, Record] = {
    **{
        f"answer to {topic}": Record(b"a", b"x", to_topic(target_topic=TARGET, reply_topic=topic))
        for topic in sorted(INTERNAL)
    },
    **{f"answer of a cancel to {topic}": Record(b"a", None, to_topic(reply_topic=topic)) for topic in sorted(INTERNAL)},
    **{f"firing to {topic}": Record(b"a", b"x", to_topic(target_topic=topic)) for topic in sorted(INTERNAL)},
    **{f"many, with a key of {size}": Record(b"k" * size, b"", CANCEL_ALL) for size in SIZES},
    **{
        f"many, with labels of {size}": Record(b"a", b"", [*CANCEL_ALL, ("schedule-labels", labels(size))])
        for size in SIZES
    },
    **{
        f"many, with a label of {size}": Record(b"a", b"", [*CANCEL_ALL, ("schedule-labels", b"a=" + b"x" * size)])
        for size in SIZES
    },
    **{f"one, with a key of {size}": Record(b"k" * size, None, [("schedule-id", b"a")]) for size in SIZES},
    **{
        f"one, with labels of {size}": Record(
            b"a", b"x", [*to_topic(target_topic=TARGET), ("schedule-labels", labels(size))]
        )
        for size in SIZES
    },
    "one, with a large answer": Record(
        b"a",
        b"x",
        [*to_topic(target_topic=TARGET, reply_topic=REPLIES), ("schedule-correlation-id", b"x" * (LARGEST - 200))],
    ),
    "a count that nobody waits for": Record(None, None, [("schedule-bulk-count", b"1:0:3")]),
    "a copy of what was never sent": Record(b"a", b"x", [("schedule-forwarded-from", b"0:99999:%d" % AT)]),
}


@pytest.mark.parametrize("partition", range(PARTITIONS))
@pytest.mark.parametrize("name", KNOWN)
def test_a_record_that_is_known_to_be_dangerous_is_answered_or_rejected(name: str, partition: int) -> None:
    check([(partition, KNOWN[name])])
