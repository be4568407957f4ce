"""Histories drawn from a seed in which a partition of the commands topic takes nothing for a while."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.wire import partition_for

from .drawing import draw
from .drawing_growth import draw_bulk_growth
from .history import SCHEDULES, History, Send
from .names import COMMANDS
from .playing import played
from .trouble import Away

MOMENT_S = 1e-6
IDS = tuple("abcdefgh")
KINDS = ("schedule", "cancel", "keep", "cancel-many")
"""None of which has a schedule fire later than it is due."""


def draw_away(seed: int) -> History:
    """Make a history up in which nothing else goes wrong; many commands are sent to partitions that are not theirs."""
    random = Random(seed)
    partitions = random.choice((2, 3, 4))
    away = _drawn(random, partitions)
    sends, at = list[Send](), 0.5
    for _ in range(random.randint(8, 30)):
        at += random.choice((0.0, 0.0, 0.1, 1.0, 2.0)) * random.random()
        kind = random.choices(KINDS, (14, 4, 1, 2))[0]
        id = random.choice(("*", "a*", "c*")) if kind.endswith("-many") else random.choice(IDS)
        partition = partition_for(id.encode(), partitions)
        if random.random() < 0.5 or partition == away.partition:  # a producer with another partitioner
            partition = random.randrange(partitions)
        wait, payload = random.choice((0, 50, 300, 1_000, 3_000, 8_000)), random.choice((b"", b"x", None))
        sends.append(Send(at, partition, kind, id, wait, payload if kind in SCHEDULES else None, None))
    most = random.choice((MOST, MOST, 1, 2))
    return History(seed, 1, partitions, tuple(sends), (), (), most, stage_ahead_ms=random.choice((0, 40)), away=away)


def draw_leaderless(seed: int) -> History:
    """Make the same up, in which the partition has no leader, and so never gets the markers that it would get then.

    If anything is passed on to a partition, it loses its leader just before that is committed.
    """
    history = draw_away(seed)
    assert history.away is not None
    away = history.away._replace(is_told=True, drops_markers=True)
    _, commits = played(replace(history, away=None))
    moments = [
        (number, commit.decided_at) for commit in commits for topic, number in commit.places if topic == COMMANDS
    ]
    if moments:
        partition, decided_at = Random(f"leaderless {seed}").choice(sorted(moments))
        begins = decided_at - MOMENT_S
        away = away._replace(partition=partition, begins=begins, ends=begins + away.ends - away.begins)
    return replace(history, away=away)


def draw_away_and_more(seed: int) -> History:
    """Make a history up in which much else goes wrong, or the topic gets more partitions, or both.

    Rates are not judged: when a partition is back, more commands come at once than in a growing topic can be timed.
    """
    random = Random(f"away {seed}")
    history = draw_bulk_growth(seed) if seed % 2 else draw(seed)
    partitions = max(2, history.partitions) if history.growth is None else history.growth.partitions
    if history.growth is None:
        history = replace(history, partitions=partitions)
    changes = tuple(change._replace(at=max(change.at, 3_000)) for change in history.changes)
    return replace(history, away=_drawn(random, partitions), changes=changes)


def _drawn(random: Random, partitions: int) -> Away:
    begins = 5 * random.random()
    ends = begins + random.choice((1.0, 5.0, 20.0)) * (0.5 + random.random())
    return Away(random.randrange(partitions), begins, ends, is_told=random.random() < 0.5)
