"""Histories drawn from a seed in which the commands topic is created again while something waits for a partition."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from light_scheduler.wire import partition_for

from .anew import Anew
from .drawing_away import draw_away
from .drawing_growth import GROWN_IDS, draw_bulk_growth
from .faults import Fault
from .history import SCHEDULES, History, Send
from .log import MAX_BATCH_BYTES
from .ruled import Change
from .trouble import Away

KINDS = ("kill", "lose", "rebalance", "stop", "stall")
LARGE = b"l" * 700
"""A payload that the topic takes at first, and in some histories not later."""
SMALL_BYTES = 800


def draw_anew(seed: int) -> History:
    """Make a history up in which a partition is away when the topic is created again, has grown before, or both.

    In every third the topic is not created again, but takes only smaller records; in half of them commands are delayed
    besides. At the end, each partition gets a command: a lane cannot tell otherwise that its log is another one if that
    is as long as the one it has read.
    """
    random = Random(f"anew {seed}")
    drawn = draw_away(seed) if seed % 2 else draw_bulk_growth(seed)
    most = drawn.partitions if drawn.growth is None else drawn.growth.partitions
    begins = (0.0 if drawn.growth is None else drawn.growth.at) + 3 * random.random()
    away = Away(random.randrange(most), begins, begins + random.choice((3.0, 8.0, 20.0)), random.random() < 0.5)
    at = away.begins + random.choice((1.0, 2.0, 6.0, 25.0)) * random.random()
    is_smaller = seed % 3 == 0
    partitions = 0 if is_smaller else random.choice((1, 2, 3, most, most + 2))
    anew = Anew(at, partitions, SMALL_BYTES if is_smaller else MAX_BATCH_BYTES)
    sends = [_enlarged(send, random) if send.at < at else send for send in drawn.sends]
    sends += [_later(number, at, partitions or most, random) for number in range(random.randint(2, 8))]
    last = max(*(send.at for send in sends), away.ends) + 5.0
    sends += [Send(last, number, "cancel", "z", 0, None, None) for number in range(partitions or most)]
    kinds = random.sample(range(20, 400), random.choice((0, 0, 1, 3)))
    faults = tuple((step, Fault(random.choice(KINDS), 3 * random.random())) for step in sorted(kinds))
    return replace(
        drawn,
        sends=tuple(sorted(sends, key=lambda send: send.at)),
        faults=faults,
        machines=random.choice((1, 2)),
        changes=_delays(seed),
        late_markers=0.0,
        away=away,
        anew=anew,
    )


def _delays(seed: int) -> tuple[Change, ...]:
    random = Random(f"delays {seed}")
    rate = random.choice((1.0, 2.0, 6.0))
    return (Change(random.choice((0, 3_000)), "default", delayed_above=rate),) if random.random() < 0.5 else ()


def _enlarged(send: Send, random: Random) -> Send:
    is_large = send.kind in SCHEDULES and random.random() < 0.5
    return send._replace(payload=LARGE) if is_large else send


def _later(number: int, at: float, partitions: int, random: Random) -> Send:
    """Make a command up that is sent when the topic has been created again."""
    kind = random.choices(("schedule", "cancel", "cancel-many"), (6, 2, 1))[0]
    id = "*" if kind.endswith("-many") else random.choice(GROWN_IDS)
    partition = random.randrange(partitions) if random.random() < 0.5 else partition_for(id.encode(), partitions)
    payload = b"x" if kind in SCHEDULES else None
    return Send(at + 0.2 + 3 * random.random() + number / 100, partition, kind, id, 3_000, payload, None)
