"""Finding out which record a topic refuses, so that only that one is set aside."""

from __future__ import annotations

import logging
from collections.abc import Collection

from aiokafka.errors import KafkaError

from light_scheduler.engine import next_try
from light_scheduler.kafka.refusals import RecordsRefusedError
from light_scheduler.kafka.target_lookup import TargetLookup
from light_scheduler.kafka.topic_facts import refusal_of
from light_scheduler.lanes.context import OriginKey, Refusals, origin_key
from light_scheduler.lanes.log_subject import about
from light_scheduler.model.place import Place

DENIAL_MARGIN_MS = 500
FORGET_MS = 60_000
"""A refusal is met in the next cycle or two; should it come later after all, the topic refuses it once more."""

log = logging.getLogger(__name__)


class RefusedRecordSearch:
    """Records that topics have refused to a lane. `name` is the lane's, for the log.

    Some topics name the record that they refuse. When a topic refuses a whole batch, all its records are suspects: they
    are sent one by one until the refused one is known, or all went through.
    """

    def __init__(self, name: str, targets: TargetLookup) -> None:
        self._name = name
        self._targets = targets
        self.refusals: Refusals = {}
        self._noted: dict[OriginKey, int] = {}  # when
        self._suspects: dict[str, set[OriginKey]] = {}  # topic -> records, one of which it refused

    @property
    def is_seeking(self) -> bool:
        """Whether there are suspects."""
        return bool(self._suspects)

    @property
    def is_under_way(self) -> bool:
        """Whether there is anything that is not dealt with."""
        return bool(self._suspects or self.refusals)

    @property
    def suspicious_topics(self) -> Collection[str]:
        """The topics whose records are to be sent one by one."""
        return self._suspects.keys()

    def note(self, refused: RecordsRefusedError, now: int) -> None:
        """Remember what a topic refused at an instant (UTC epoch ms)."""
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
        """Refuse all firings for a topic from an instant (UTC epoch ms) on: each try fails the whole transaction.

        That ends before what was refused is tried again, whichever clock is faster.
        """
        seconds = max(0, next_try(now) - now - DENIAL_MARGIN_MS) / 1_000
        self._targets.deny(topic, refusal_of(topic, error), seconds)

    def refuse(self, keys: Collection[OriginKey], reason: str, now: int, place: Place | None) -> None:
        """Have what records would deliver refused when it is met next, from an instant (UTC epoch ms) on.

        A `place` that has refused several is left alone for a while (`kafka.half_open`). Nobody else's firings are
        refused for that: they wait, and one of them at a time tries whether the place takes anything.
        """
        self.refusals.update(dict.fromkeys(keys, reason))
        self._noted.update(dict.fromkeys(keys, now))
        if place is not None:
            times = self._targets.trials.refused(place, [(tenant, schedule) for tenant, schedule, *_ in keys])
            if times is not None:
                self._targets.leave_alone(place, f"it refuses one record after the other: {reason}", times)

    def expire(self, now: int) -> None:
        """Forget what was refused and never met again: it was cancelled, replaced, or is late by its own rules."""
        if self._noted:
            self._forget({key for key, noted in self._noted.items() if now - noted > FORGET_MS})

    def clear(self, done: set[OriginKey], *, has_looked: bool) -> None:
        """Forget what a cycle that was committed has dealt with; `has_looked`: what is due was in it."""
        self._forget(done)
        left = {topic: keys - done for topic, keys in self._suspects.items()}
        # Suspects that are not due any more were cancelled: nothing of theirs was in a cycle that has looked.
        self._suspects = {
            topic: keys for topic, keys in left.items() if keys and not (has_looked and keys == self._suspects[topic])
        }

    def _forget(self, keys: set[OriginKey]) -> None:
        self.refusals = {key: reason for key, reason in self.refusals.items() if key not in keys}
        self._noted = {key: noted for key, noted in self._noted.items() if key not in keys}
