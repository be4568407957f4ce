"""Histories drawn from a seed in which a tenant sends about as many schedules as it may have."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.wire import partition_for

from .drawing_growth import draw_growth
from .faults import KINDS, Fault
from .history import SCHEDULES, History, Send
from .ruled import Change


def draw_lending(seed: int) -> History:
    """Make a history up in which a tenant sends about as many schedules as it may have, with any ids.

    In a third nothing goes wrong; in another third the quota changes.
    """
    random = Random(seed)
    partitions, quota = random.choice((2, 3, 3, 4)), random.choice((1, 2, 3, 5, 8, 20))
    sends, at = [], 0.5
    for _ in range(random.randint(quota, 2 * quota + 6)):
        at += random.choice((0.0, 0.0, 0.05, 0.3, 1.0)) * random.random()
        kind = random.choices(("schedule", "keep", "cancel", "cancel-many"), (20, 1, 4, 0.2))[0]
        id = "*" if kind.endswith("-many") else f"s{random.randrange(3 * quota + 3)}"
        partition = partition_for(id.encode(), partitions)
        if random.random() < 0.1:
            partition = random.randrange(partitions)
        wait = random.choice((0, 1_000, 20_000, 30_000, 30_000))
        payload = b"x" if kind in SCHEDULES else None
        sends.append(Send(at, partition, kind, id, wait, payload, random.choice((None, None, None, False))))
    faults: list[tuple[int, Fault]] = []
    for _ in range(0 if seed % 3 == 0 else random.choice((1, 2, 3, 5))):
        kind = random.choices(KINDS, (8, 2, 2, 4, 6, 4, 1, 4, 2))[0]
        faults.append((random.randint(20, random.choice((150, 300, 600))), Fault(kind, random.random() * 9.0)))
    changes = [Change(0, "default", max_pending=quota)]
    if seed % 3 == 2:
        changes.append(Change(random.randint(500, 4_000), "default", max_pending=random.choice((None, 1, 4, 9))))
    if seed % 6 == 1:
        rate = random.choice((4.0, 20.0))
        changes = [each._replace(delayed_above=rate) for each in changes]
    return History(
        seed,
        random.choice((1, 2, 2)),
        partitions,
        tuple(sends),
        tuple(sorted(faults)),
        (),
        random.choice((MOST, 1, 2)),
        stage_ahead_ms=random.choice((0, 0, 400)),
        late_markers=0.2 if seed % 4 == 1 else 0.0,
        changes=tuple(changes),
        lends=True,
    )


def draw_lending_growth(seed: int) -> History:
    """Make a history up in which the commands topic grows while a tenant sends more schedules than it may have."""
    random, history = Random(seed), draw_growth(seed)
    rate = history.changes[0].delayed_above if history.changes else None
    quota = random.choice((1, 2, 3, 5))
    later = Change(random.randint(1_000, 9_000), "default", max_pending=quota + random.choice((-1, 1, 2)))
    changes = (Change(0, "default", max_pending=quota), later)
    return replace(history, changes=tuple(each._replace(delayed_above=rate) for each in changes), lends=True)
