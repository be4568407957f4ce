"""Histories drawn from a seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from aiokafka.errors import InvalidTxnState

from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.model import EQUAL_SHARES, OTHERS, Shares
from light_scheduler.wire import partition_for

from .drawing_growth import draw_growth
from .faults import KINDS, Fault
from .group import SESSION_TIMEOUT_S
from .history import SCHEDULES, TENANTS, History, Send
from .log import POISON
from .names import FRAIL, TARGET
from .node import TOMBSTONES_KEPT_MS
from .ruled import TENANTS as RULED_TENANTS
from .ruled import draw_changes
from .trouble import Trouble, draw_trouble_of

IDS = tuple(TENANTS)

SHARES = (
    EQUAL_SHARES,
    EQUAL_SHARES,
    Shares({"acme": 5}, rate=2),
    Shares(rates={"default": 0.5, "zeta": 40}),
    Shares(rate=1, rates={OTHERS: 1}),
)

COMMAND_KINDS = (*SCHEDULES, "cancel", "pause", "resume", "cancel-many", "pause-many", "resume-many")


def draw(seed: int) -> History:
    """Make a history up."""
    random = Random(seed)
    partitions = 1 if random.random() < 0.6 else 2
    sends = []
    at = 0.0
    for _ in range(random.randint(1, 9)):
        at += random.choice((0.0, 0.0, 0.1, 1.0, 3.0)) * random.random()
        kind = random.choices(COMMAND_KINDS, (14, 3, 1, 1, 1, 1, 1, 2, 1, 1))[0]
        id = random.choice(("*", "*", "a*", "c*")) if kind.endswith("-many") else random.choice(IDS)
        partition = partition_for(id.encode(), partitions)
        if random.random() < 0.2:  # a producer with another partitioner
            partition = random.randrange(partitions)
        payload = POISON if random.random() < 0.06 else random.choice((b"", b"x", b"\x00\xff" * 20, None))
        if kind not in SCHEDULES:
            payload = None
        sends.append(
            Send(
                at,
                partition,
                kind,
                id,
                random.choice((-500, 0, 50, 300, 1_000, 3_000, 8_000)),
                payload,
                random.choice((None, None, None, None, False, True)),
            )
        )
    faults = []
    for _ in range(random.choices((0, 1, 2, 3, 4), (1, 6, 5, 3, 1))[0]):
        kind = random.choices(KINDS, (8, 3, 2, 5, 6, 4, 2, 3, 2))[0]
        longest = {"stall": 12.0, "outage": 12.0}.get(kind, random.choice((1.0, 9.0, 9.0, 20.0, 60.0)))
        faults.append((random.randint(1, random.choice((30, 80, 160))), Fault(kind, random.random() * longest)))
    cleanings = [random.random() * 60 for _ in range(random.choice((0, 0, 1, 3)))]
    compactions = tuple(at + later for at in cleanings for later in (0.0, TOMBSTONES_KEPT_MS / 1_000 + 1.0))
    machines, most, shares = random.choice((1, 2, 2)), random.choice((MOST, MOST, 1, 2)), random.choice(SHARES)
    stage_ahead_ms = random.choice((0, 40, 400))
    faults.sort()
    return History(
        seed,
        machines,
        partitions,
        tuple(sends),
        tuple(faults),
        compactions,
        most,
        shares,
        stage_ahead_ms,
        late_markers=0.2 if seed % 4 == 1 else 0.0,
        dropped_markers=0.05 if seed % 8 in (1, 2) else 0.0,
    )


def draw_frozen_standby(seed: int) -> History:
    """Make a history up in which one that stands by, or is about to, is away for longer than tombstones are kept."""
    random = Random(seed)
    fires_at = random.choice((4.0, 8.0, 12.0))
    sends = (Send(0.5, 0, "schedule", "a", int(1_000 * fires_at) - 500, b"x", None),)
    freeze = Fault("freeze", TOMBSTONES_KEPT_MS / 1_000 + fires_at + random.random() * 10)
    frozen_at = random.randint(25, 60)
    compactions = (fires_at + 0.5, fires_at + TOMBSTONES_KEPT_MS / 1_000 + 1)
    return History(3 * seed, 2, 1, sends, ((frozen_at, freeze),), compactions)


def draw_frozen_owner(seed: int) -> History:
    """Make a history up in which an owner is away for longer than tombstones are kept, and then gets its lane back."""
    random = Random(seed)
    fires_at = random.choice((4.0, 8.0, 12.0))
    kept_s = TOMBSTONES_KEPT_MS / 1_000
    sends = (Send(0.5, 0, "schedule", "a", int(1_000 * fires_at) - 500, b"x", None),)
    frozen_at = random.randint(20, 50)
    freeze = (frozen_at, Fault("freeze", kept_s + fires_at + SESSION_TIMEOUT_S + random.random() * 10))
    kill = (frozen_at + random.randint(60, 250), Fault("kill", 60.0))  # of whoever has the lane then
    taken_over_at = fires_at + 1.5 * SESSION_TIMEOUT_S
    compactions = (taken_over_at, taken_over_at + kept_s + 1)
    # Only seeds that are multiples of 3 have standbys.
    return History(3 * seed + 1, 2, 1, sends, (freeze, kill), compactions)


def draw_doubt(seed: int) -> History:
    """Make a history up in which commits and owners are in doubt: answers are lost, lanes move, markers are late."""
    random = Random(seed)
    sends = tuple(
        Send(0.3 * number, 0, "schedule", random.choice(IDS), random.choice((0, 300, 1_000)), b"x", None)
        for number in range(random.randint(6, 12))
    )
    kinds = random.choice((("lose",), ("lose", "rebalance", "stop"), ("rebalance", "stop", "kill", "stall")))
    faults = tuple(
        (step, Fault(random.choice(kinds), 3 * random.random())) for step in sorted(random.sample(range(30, 300), 12))
    )
    machines, dropped_markers = random.choice((1, 2, 2)), 0.1 * (seed % 2)
    return History(seed, machines, 1, sends, faults, (), late_markers=0.6, dropped_markers=dropped_markers)


def draw_probes(seed: int) -> History:
    """Make a history up in which partitions are probed, whatever else happens."""
    drawn = (draw, draw, draw_doubt, draw_growth)[seed % 4](seed)
    return replace(drawn, probes=1.0)


def draw_trouble(seed: int) -> History:
    """Make a history up in which nothing goes wrong but a target."""
    random = Random(seed)
    partitions, sends, at = random.choice((1, 1, 2)), [], 0.5
    for number in range(random.randint(4, 14)):
        at += random.choice((0.0, 0.1, 1.0, 3.0)) * random.random()
        target = random.choice((TARGET, FRAIL))
        id = f"{target}-{number}"
        home = partition_for(id.encode(), partitions)
        wait = random.choice((0, 50, 300, 1_000, 3_000, 8_000))
        sends.append(Send(at, home, "schedule", id, wait, random.choice((b"", b"x", None)), None, target))
        if random.random() < 0.15:
            sends.append(Send(at + 5 * random.random(), home, "cancel", id, 0, None, None, target))
    return History(
        seed,
        1,
        partitions,
        tuple(sorted(sends, key=lambda send: send.at)),
        (),
        (),
        random.choice((MOST, MOST, 2)),
        stage_ahead_ms=random.choice((0, 40)),
        trouble=draw_trouble_of(random),
    )


def draw_nameless(seed: int) -> History:
    """Make a history up in which a target fails whole transactions for a minute, while commands come all the time."""
    random = Random(seed)
    sends: list[Send] = []
    at, apart = 0.5, random.choice((0.1, 0.2, 0.3))
    while at < 40:
        target = FRAIL if random.random() < 0.04 else TARGET
        wait = random.choice((50, 300, 1_000, 3_000))
        sends.append(Send(at, 0, "schedule", f"{target}-{len(sends)}", wait, b"x", None, target))
        at += 2 * apart * random.random()
    trouble = Trouble("refuses", (0, 1), 1.0, 60.0, InvalidTxnState)
    return History(seed, 1, 1, tuple(sends), (), (), MOST, stage_ahead_ms=0, trouble=trouble)


def draw_tenants(seed: int) -> History:
    """Make a history up in which the rules of tenants change."""
    random = Random(seed)
    partitions, sends, at = random.choice((1, 1, 2)), [], 0.0
    for _ in range(random.randint(3, 14)):
        at += random.choice((0.0, 0.1, 1.0, 3.0)) * random.random()
        kind = random.choices(("schedule", "keep", "cancel", "pause", "resume", "pause-many"), (14, 2, 2, 1, 1, 1))[0]
        id = "*" if kind.endswith("-many") else random.choice((*IDS, *RULED_TENANTS))
        payload = random.choice((b"", b"x", b"xyz", None)) if kind in SCHEDULES else None
        wait = random.choice((0, 50, 300, 1_000, 3_000, 8_000))
        target = random.choice((TARGET, TARGET, TARGET, ""))
        sends.append(Send(at, partition_for(id.encode(), partitions), kind, id, wait, payload, None, target))
    kinds = ("kill", "lose", "rebalance", "stop")
    struck = sorted(random.sample(range(20, 200), random.choice((0, 1, 3))))
    faults = tuple((step, Fault(random.choice(kinds), 3 * random.random())) for step in struck)
    return History(
        seed,
        random.choice((1, 2)),
        partitions,
        tuple(sends),
        faults,
        (),
        random.choice((MOST, 1, 2)),
        stage_ahead_ms=random.choice((0, 40, 400)),
        changes=draw_changes(random, TARGET),
    )
