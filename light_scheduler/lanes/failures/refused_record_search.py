"""Finds the record that a topic refuses, so that only that one is set aside."""

from __future__ import annotations

import logging
from collections.abc import Collection

from aiokafka.errors import KafkaError

from light_scheduler.engine import next_try
from light_scheduler.kafka.refusals import RecordsRefusedError
from light_scheduler.kafka.target_lookup import TargetLookup
from light_scheduler.kafka.topic_facts import refusal_of
from light_scheduler.lanes.context.lane_context import OriginKey, Refusals, origin_key
from light_scheduler.lanes.context.log_subject import about
from light_scheduler.model.place import Place

DENIAL_MARGIN_MS = 500
FORGET_MS = 60_000
"""When to forget a refusal. It usually applies in the next cycle or two. After that, the topic just refuses again."""

log = logging.getLogger(__name__)


class RefusedRecordSearch:
    """The records of a lane that topics have refused. `name` is the lane's, for the log.

    Some topics name the record that they refuse. When a topic refuses a whole batch, all its records are suspects. They
    are sent one by one until the refused one is known, or all have been accepted.
    """

    def __init__(self, name: str, targets: TargetLookup) -> None:
        self._name = name
        self._targets = targets
        self.refusals: Refusals = {}
        self._noted: dict[OriginKey, int] = {}  # key -> when noted (UTC epoch ms)
        self._suspects: dict[str, set[OriginKey]] = {}  # topic -> records, one of which it refused

    @property
    def is_seeking(self) -> bool:
        """Whether there are suspects."""
        return bool(self._suspects)

    @property
    def is_under_way(self) -> bool:
        """Whether there are suspects or refusals left to deal with."""
        return bool(self._suspects or self.refusals)

    @property
    def suspicious_topics(self) -> Collection[str]:
        """The topics whose records must be sent one by one."""
        return self._suspects.keys()

    def note(self, refused: RecordsRefusedError, now: int) -> None:
        """Note the records that a topic refused at an instant (UTC epoch ms)."""
        with about(refused.culprits):
            log.warning("lane %s: %s", self._name, refused)
        keys = {origin_key(origin) for origin in refused.culprits}
        reason = refusal_of(refused.topic, refused.cause)
        if refused.is_of_topic:
            self.deny(refused.topic, refused.cause, now)
        if refused.is_certain:
            self.refuse(keys, reason, now, refused.place)
        else:
            self._suspects[refused.topic] = self._suspects.get(refused.topic, set()) | keys

    def deny(self, topic: str, error: KafkaError, now: int) -> None:
        """Refuse all firings for a topic from an instant (UTC epoch ms), as each try fails the whole transaction.

        The denial ends before refused firings are retried, whichever clock is faster.
        """
        seconds = max(0, next_try(now) - now - DENIAL_MARGIN_MS) / 1_000
        self._targets.deny(topic, refusal_of(topic, error), seconds)

    def refuse(self, keys: Collection[OriginKey], reason: str, now: int, place: Place | None) -> None:
        """Refuse the records with these keys from an instant (UTC epoch ms) on.

        A `place` that has refused several records is left alone for a while (`kafka.half_open`). That refuses no other
        firings: they wait, and one at a time tests whether the place accepts records.
        """
        self.refusals.update(dict.fromkeys(keys, reason))
        self._noted.update(dict.fromkeys(keys, now))
        if place is not None:
            times = self._targets.trials.refused(place, [(tenant, schedule) for tenant, schedule, *_ in keys])
            if times is not None:
                self._targets.leave_alone(place, f"it refuses one record after the other: {reason}", times)

    def expire(self, now: int) -> None:
        """Forget refused records that never came up again: cancelled, replaced, or late by their own rules."""
        if self._noted:
            self._forget({key for key, noted in self._noted.items() if now - noted > FORGET_MS})

    def clear(self, done: set[OriginKey], *, has_looked: bool) -> None:
        """Forget records that a committed cycle has dealt with. `has_looked` says that the cycle took due firings."""
        self._forget(done)
        left = {topic: keys - done for topic, keys in self._suspects.items()}
        # If a cycle that has looked had no record of the suspects, they were cancelled.
        self._suspects = {
            topic: keys for topic, keys in left.items() if keys and not (has_looked and keys == self._suspects[topic])
        }

    def _forget(self, keys: set[OriginKey]) -> None:
        self.refusals = {key: reason for key, reason in self.refusals.items() if key not in keys}
        self._noted = {key: noted for key, noted in self._noted.items() if key not in keys}
