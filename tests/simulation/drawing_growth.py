"""Histories drawn from a seed in which the commands topic gets more partitions."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.wire import partition_for

from .faults import KINDS, Fault
from .history import SCHEDULES, Growth, History, Send
from .ruled import Change

GROWN_IDS = tuple("abcdefghij")
"""Of schedules in histories in which the commands topic grows."""


def draw_growth(seed: int) -> History:
    """Make a history up in which the commands topic gets more partitions, while commands come and much goes wrong.

    In every third the commands are delayed besides.
    """
    random = Random(seed)
    partitions, grown = random.choice(((1, 2), (1, 3), (2, 4), (2, 3), (2, 6)))
    growth = Growth(1.0 + 5 * random.random(), grown)
    sends, at = [], 0.0
    for _ in range(random.randint(8, 28)):
        at += random.choice((0.0, 0.05, 0.3, 1.0, 3.0)) * random.random()
        kind = random.choices(("schedule", "cancel", "pause", "resume", "keep", "fail"), (12, 6, 1, 2, 1, 1))[0]
        id = random.choice(GROWN_IDS)
        now = grown if at > growth.at else partitions
        known = partitions if random.random() < 0.2 else now  # a producer that has not heard of it
        partition = random.randrange(now) if random.random() < 0.1 else partition_for(id.encode(), known)
        wait = random.choice((0, 300, 1_000, 8_000, 15_000, 20_000))
        payload = random.choice((b"", b"x")) if kind in SCHEDULES else None
        sends.append(Send(at, partition, kind, id, wait, payload, random.choice((None, None, None, False, True))))
    faults = []
    for _ in range(random.choices((0, 1, 2, 3, 5), (2, 4, 4, 3, 2))[0]):
        kind = random.choices(KINDS, (8, 2, 2, 4, 6, 4, 1, 4, 2))[0]
        faults.append((random.randint(20, random.choice((150, 300, 600))), Fault(kind, random.random() * 9.0)))
    most, stage_ahead_ms = random.choice((MOST, 1, 2)), random.choice((0, 0, 400))
    machines, late_markers = random.choice((1, 2, 2)), 0.2 if seed % 4 == 1 else 0.0
    changes: tuple[Change, ...] = ()
    if seed % 3 == 0:
        changes = (Change(random.choice((0, 3_000)), "default", delayed_above=random.choice((2.0, 6.0, 20.0))),)
    return History(
        seed,
        machines,
        partitions,
        tuple(sends),
        tuple(sorted(faults)),
        (),
        most,
        stage_ahead_ms=stage_ahead_ms,
        late_markers=late_markers,
        changes=changes,
        growth=growth,
    )


def draw_bulk_growth(seed: int) -> History:
    """Make a history up as `draw_growth` does, in which bulk commands come while schedules move."""
    random, others, history = Random(-1 - seed), Random(f"others {seed}"), draw_growth(seed)
    assert history.growth is not None
    begin, sends = history.growth.at, list(history.sends)
    for _ in range(random.randint(1, 4)):
        at = begin + random.choice((-1.0, 0.0, 0.0, 0.5, 2.0)) + 3 * random.random()
        kind, id = (
            random.choice(("cancel-many", "pause-many", "resume-many")),
            random.choice(("*", "*", GROWN_IDS[0][0] + "*")),
        )
        partition = random.randrange(history.growth.partitions if at > begin else history.partitions)
        sends.append(Send(max(0.0, at), partition, kind, id, 0, None, random.choice((None, None, False))))
        if random.random() < 0.5:  # right behind it, in the same partition
            homes = [each for each in GROWN_IDS if partition_for(each.encode(), history.growth.partitions) == partition]
            kind = random.choice(("schedule", "resume", "cancel"))
            payload = b"x" if kind == "schedule" else None
            named = others.sample(GROWN_IDS, 3) if others.random() < 0.5 else homes[:1]  # a sender may choose any
            sends += [Send(max(0.0, at), partition, kind, each, 15_000, payload, None) for each in named]
    return replace(history, sends=tuple(sorted(sends, key=lambda send: send.at)))
