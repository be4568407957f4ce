"""Finding out which record a topic refuses, so that only that one is set aside."""

from __future__ import annotations

import logging
from collections.abc import Collection

from light_scheduler.engine import next_try

from .batches import RecordsRefusedError
from .context import OriginKey, Refusals, origin_key
from .targets import Targets, refusal_of

DENIAL_MARGIN_MS = 500

log = logging.getLogger(__name__)


class Isolation:
    """What the topics of a lane have refused. `name` is the lane's, for the log.

    A topic that names the record it refuses has said all. Of one that refuses a batch all records are suspects: they
    are sent one by one until it is known which it is, or until they went through.
    """

    def __init__(self, name: str, targets: Targets) -> None:
        self._name = name
        self._targets = targets
        self.refusals: Refusals = {}
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
        log.warning("lane %s: %s", self._name, refused)
        keys = {origin_key(origin) for origin in refused.culprits}
        reason = refusal_of(refused.topic, refused.cause)
        if refused.is_of_topic:
            # Each try fails for all. The denial ends before what was refused is tried again, whichever clock is faster.
            self._targets.deny(refused.topic, reason, max(0, next_try(now) - now - DENIAL_MARGIN_MS) / 1_000)
        if refused.is_certain:
            self.refusals.update(dict.fromkeys(keys, reason))
        else:
            self._suspects[refused.topic] = self._suspects.get(refused.topic, set()) | keys

    def clear(self, done: set[OriginKey]) -> None:
        """Forget what a cycle that was committed has dealt with."""
        self.refusals = {key: reason for key, reason in self.refusals.items() if key not in done}
        left = {topic: keys - done for topic, keys in self._suspects.items()}
        # Suspects that are not due any more were cancelled: nothing of theirs was in this cycle.
        self._suspects = {topic: keys for topic, keys in left.items() if keys and keys != self._suspects[topic]}
