"""The number of partitions that keys belong to, as records of the compacted tenants topic. Pure.

The topic has other records too.

    placement/{topic}/{topic id}/{partitions}                        keys belong to this many partitions from then on
    placement/{topic}/{topic id}/{partitions}/running/{partition}    that partition is ready to be handed schedules
    placement/{topic}/{topic id}/{partitions}/following/{partition}  its worker has bulk commands follow schedules
    placement/{topic}/{topic id}/{partitions}/settled/{partition}    nothing is left to move from it or to it

Values are `{}`: the keys say it all, and none is ever removed. A recreated topic has another id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from light_scheduler.access.records import PEER_SECRET_KEY, decode_peer_secret
from light_scheduler.errors import FormatError
from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.model.partitioning import Partitioning

_PREFIX = b"placement/"
_COUNT = re.compile(r"(?P<id>.+)/[0-9]+")
_STAGE = re.compile(f".+/[0-9]+/(?:{'|'.join(Stage)})/[0-9]+")
VALUE = b"{}"


class TopicIncarnation(NamedTuple):
    """A commands topic, and the id that distinguishes it from others with the same name."""

    topic: str
    id: str


def partitions_key(topic: TopicIncarnation, partitions: int) -> bytes:
    """Return the record key which says that keys belong to this many partitions."""
    return _PREFIX + f"{topic.topic}/{topic.id}/{partitions}".encode()


def stage_key(topic: TopicIncarnation, partitions: int, stage: Stage, partition: int) -> bytes:
    """Return the record key for the stage of a partition, one of `partitions`."""
    return partitions_key(topic, partitions) + f"/{stage}/{partition}".encode()


def partitioning_in(entries: Mapping[bytes, bytes], topic: TopicIncarnation) -> Partitioning | None:
    """Return the partitioning of a commands topic from the tenants topic, or None if there is none yet.

    Entries are in the order in which they were written. A number only counts if the growth before it was settled.
    """
    prefix = _PREFIX + f"{topic.topic}/{topic.id}/".encode()
    counts: list[int] = []
    stages: dict[tuple[int, str], set[int]] = {}
    for key in entries:
        if key.startswith(prefix):
            number, *stage = key.removeprefix(prefix).decode(errors="replace").split("/")
            if number.isdecimal() and not stage:
                counts.append(int(number))
            elif number.isdecimal() and len(stage) == 2 and stage[1].isdecimal():
                stages.setdefault((int(number), stage[0]), set()).add(int(stage[1]))
    return _in_force(counts, stages, _secret_in(entries))


def last_partitioning_in(entries: Mapping[bytes, bytes], topic: str) -> Partitioning | None:
    """Return the partitioning of the last topic with this name that had one, or None. It may have been deleted."""
    prefix = _PREFIX + f"{topic}/".encode()
    ids: dict[str, None] = {}  # in order of the last growth; an id may have slashes
    for key in entries:
        if key.startswith(prefix):
            rest = key.removeprefix(prefix).decode(errors="replace")
            if not _STAGE.fullmatch(rest) and (count := _COUNT.fullmatch(rest)):
                ids.pop(count["id"], None)
                ids[count["id"]] = None
    found = (partitioning_in(entries, TopicIncarnation(topic, id)) for id in reversed(ids))
    return next(filter(None, found), None)


def _in_force(counts: Iterable[int], stages: Mapping[tuple[int, str], set[int]], secret: bytes) -> Partitioning | None:
    partitioning: Partitioning | None = None
    for partitions in filter(None, counts):
        if partitioning is not None and not (partitioning.is_settled and partitions > partitioning.partitions):
            continue
        partitioning = Partitioning(
            partitions,
            None if partitioning is None else partitioning.partitions,
            frozenset(stages.get((partitions, Stage.RUNNING), ())),
            frozenset(stages.get((partitions, Stage.SETTLED), ())),
            secret,
            frozenset(stages.get((partitions, Stage.FOLLOWING), ())),
        )
    return partitioning


def _secret_in(entries: Mapping[bytes, bytes]) -> bytes:
    stored = entries.get(PEER_SECRET_KEY)
    try:
        return b"" if stored is None else decode_peer_secret(stored)
    except FormatError:
        return b""
