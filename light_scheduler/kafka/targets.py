"""The worker's cache of the target topics."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Set
from contextvars import Context
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartitionError,
)

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import BrokerError, BrokerUnreachable
from light_scheduler.log_fields import without_log_fields
from light_scheduler.model.place import Place
from light_scheduler.model.topic_configuration import CONFIGURATION_NAMES, TopicConfiguration, configuration_of

from .half_open import Trials
from .promptness import ANSWER_S, Promptness
from .target_outages import WHOLE_TOPIC, Outages
from .target_probe import Probe
from .topic_facts import (
    TargetTopic,
    faults_of,
    is_denied,
    is_missing,
    is_there,
    refusal_in,
    refusal_of,
    refused,
    topic_of,
    unknown,
)

__all__ = ["TargetTopic", "Targets", "refusal_of"]

FRESH_S = 60.0
"""How long metadata of an existing topic are used before they are requested again (it may have grown)."""
ABSENT_FRESH_S = 2.0
GONE_S = 300.0
"""How long firings wait for a deleted topic to be created again. After that, the topic counts as missing."""
WATCH_S = 0.5
"""How often unavailable topics are checked."""
DOUBT_S = 15.0
"""How long topics without a known fault are checked that often.

Kafka shows no fault before a dead broker's session has timed out (`broker.session.timeout.ms`, 9 s by default).
"""
CONFIGURED_S = 5.0
"""How long such a check uses the known configuration of a topic without a fault."""
TIMEOUT_S = 5.0
"""Timeout of a request, in which several brokers may be tried."""
MOST_ASKED = 500
"""Maximum number of topics in a request, so that brokers answer quickly."""
REFUSED = (
    InvalidTopicError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartitionError,
)
MOST_KNOWN = 20_000
"""Maximum number of known topics. Their names come from senders of commands."""

log = logging.getLogger(__name__)


class Targets:
    """A cache of topics, shared by the lanes of a worker. Looks up unknown topics.

    `own` are the application's topics, without which nothing works. Problems of other topics only affect firings for
    them. `outages` has the partitions that are currently unavailable, `trials` the partitions that refuse records.
    `probe` checks whether a partition can be written to. A partition of our own topics counts as unavailable if the
    metadata say so (`TargetTopic.unavailable`), and is in `outages` if it did not answer.
    """

    def __init__(
        self,
        connection: Address,
        own: Iterable[str] = (),
        clock: Clock | None = None,
        probe: Probe | None = None,
        promptness: Promptness | None = None,
    ) -> None:
        self._promptness = promptness or Promptness()
        self._probe = probe
        self._probes: set[asyncio.Task[None]] = set()
        self._connection = connection_to(connection)
        self._own = frozenset(own)
        self._clock = clock or SystemClock()
        self._admin: AIOKafkaAdminClient | None = None
        self._known: dict[str, TargetTopic] = {}
        self._denied: dict[str, tuple[str, float]] = {}  # topic -> (reason, until)
        self._gone: dict[str, float] = {}  # topic -> missing since
        self._doubted: dict[str, float] = {}  # topic -> until
        self._configurations: dict[str, TopicConfiguration] = {}  # of doubted topics, as old as what is known of them
        self._lock = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None
        self.outages = Outages(time.monotonic)
        self.trials = Trials(self.outages)

    def __getitem__(self, topic: str) -> TargetTopic:
        """Return the last known facts about a topic. Raises KeyError if it was never resolved."""
        return self._known[topic]

    def forget_all(self) -> None:
        """Make each topic be looked up again at its next use."""
        self.forget(self._known)

    def forget(self, topics: Iterable[str]) -> None:
        """Make these topics be looked up again at their next use."""
        self._known |= {name: self._known[name]._replace(asked_at=-FRESH_S) for name in topics if name in self._known}

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        """Treat an existing topic as not writable for some seconds.

        For problems that only appear when writing, such as a missing right: each attempt costs a transaction.
        """
        self._denied[topic] = refusal, time.monotonic() + seconds
        if topic in self._known:
            self._known[topic] = self._known[topic]._replace(asked_at=-FRESH_S)

    async def resolve(self, topics: Set[str]) -> None:
        """Look up topics that are unknown or outdated.

        Raises BrokerError if that fails and one of them is our own or unknown.
        """
        now = time.monotonic()
        if all((known := self._known.get(topic)) is not None and _is_fresh(known, now) for topic in topics):
            return
        async with self._lock:
            stale = [topic for topic in topics if not ((t := self._known.get(topic)) and _is_fresh(t, now))]
            if not stale:
                return
            self._make_room(topics)
            try:
                await self._look_at(stale)
            except (KafkaError, OSError, TimeoutError) as error:
                if any(topic in self._own or topic not in self._known for topic in stale):
                    if self._admin is None:
                        raise BrokerUnreachable(self._connection.bootstrap_servers) from error
                    raise BrokerError(f"cannot look up topics {', '.join(stale[:5])}: {error!r}") from error
                log.warning("cannot look up topics %s: %r", ", ".join(stale[:5]), error)
        self._watch_outages()

    async def suspect(self, places: Iterable[Place], reason: str) -> None:
        """Hold back firings for places that do not answer. If the metadata show faults, only these places stay held.

        Otherwise, partitions of the same topics with the same leader are also held back, since each of them could cost
        another timeout.
        """
        suspects = set(places)
        self.outages.suspect(suspects, reason, self._clock.now())
        self._watch_outages()
        try:
            await self._look_at(sorted({topic for topic, _ in suspects}))
        except (KafkaError, OSError, TimeoutError) as error:
            log.warning("cannot look up the targets that do not answer: %r", error)
            self.outages.close(suspects)  # no broker answers, so the targets are not the cause
            return
        faulty = {place for place, outage in self.outages if outage.has_known_fault}
        faulty |= {place for place in suspects if self._is_unavailable(place)}
        if any(self.outages.place_held(*place) in faulty for place in suspects):
            self.outages.close(place for place in suspects if self.outages.place_held(*place) not in faulty)
            return
        for topic, partition in suspects:
            if (known := self._known.get(topic)) is not None:
                alike = [(topic, other) for other in known.led_like(partition)]
                self.outages.suspect(alike, reason, self._clock.now())

    def doubt(self, topics: Iterable[str]) -> None:
        """Watch the metadata of topics for a while, since their leaders may be lost. Does not wait."""
        until = time.monotonic() + DOUBT_S
        self._doubted.update(dict.fromkeys(topics, until))
        self._watch_outages()

    def leave_alone(self, place: Place, reason: str, times: int | None = None) -> None:
        """Hold back firings for a place, longer with each call, or as after `times` failures."""
        self.outages.suspect([place], reason, self._clock.now(), times)
        self._watch_outages()

    async def close(self) -> None:
        """Stop watching and close the connection."""
        tasks = [*self._probes] if self._watch is None else [self._watch, *self._probes]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._watch = None
        if self._admin is not None:
            await self._admin.close()
            self._admin = None

    def _is_unavailable(self, place: Place) -> bool:
        """Return whether the metadata tell that a partition takes nothing; those of our topics are not in `outages`."""
        known = self._known.get(place[0])
        return known is not None and place[1] in known.unavailable

    def _watch_outages(self) -> None:
        if self._watched() and (self._watch is None or self._watch.done()):
            self._watch = asyncio.create_task(self._watch_until_mended(), name="watching targets", context=Context())

    def _watched(self) -> set[str]:
        now = time.monotonic()
        self._doubted = {topic: until for topic, until in self._doubted.items() if now < until}
        self._configurations = {topic: each for topic, each in self._configurations.items() if topic in self._doubted}
        own = {topic for topic in self._own if (known := self._known.get(topic)) is not None and known.unavailable}
        return self.outages.topics | self._doubted.keys() | own

    async def _watch_until_mended(self) -> None:
        while watched := self._watched():
            for place in self.outages.to_probe():
                task = asyncio.create_task(self._try(place), name=f"probing {place}", context=Context())
                self._probes.add(task)
                task.add_done_callback(self._probes.discard)
            try:
                await self._look_at(sorted(watched), self._configured(watched))
            except (KafkaError, OSError, TimeoutError) as error:
                log.debug("cannot look up targets that are unavailable: %r", error)
            await asyncio.sleep(WATCH_S)

    async def _try(self, place: Place) -> None:
        """Probe a place. Without a probe function, this counts as answered."""
        answered = True
        try:
            if self._probe is not None and place[1] != WHOLE_TOPIC:
                await self._probe(place)
        except REFUSED as error:  # the next write of a lane will show why
            log.debug("%s refuses a probe: %r", place, error)
        except Exception as error:  # noqa: BLE001 - probed again after any error
            log.debug("%s does not answer a probe: %r", place, error)
            answered = False
        if answered:
            await self._look_again(place[0])
        self.outages.probed(place, answered=answered and not self._is_unavailable(place))

    async def _look_again(self, topic: str) -> None:
        """Update a topic from its current metadata, if they are available."""
        try:
            await self._look_at([topic])
        except (KafkaError, OSError, TimeoutError) as error:
            log.debug("cannot look up %s: %r", topic, error)

    def _configured(self, topics: Set[str]) -> set[str]:
        """Return the topics without a known fault whose configuration was read a moment ago."""
        now, away = time.monotonic(), self.outages.topics

        def is_configured(known: TargetTopic) -> bool:
            return known.refusal is None and not known.unavailable and now - known.asked_at < CONFIGURED_S

        candidates = (topics & self._configurations.keys() & self._known.keys()) - away
        return {topic for topic in candidates if is_configured(self._known[topic])}

    async def _look_at(self, topics: list[str], configured: Set[str] = frozenset()) -> None:
        """Request metadata and configurations of topics, and update the cache.

        Those that are `configured` keep their configuration and its age, so `resolve` asks for it as soon as otherwise.
        """
        for first in range(0, len(topics), MOST_ASKED):
            async with asyncio.timeout(TIMEOUT_S):
                described, configs = await self._ask(topics[first : first + MOST_ASKED], configured)
            now = time.monotonic()
            self._denied = {name: denied for name, denied in self._denied.items() if denied[1] > now}
            for topic in described:
                name = topic["topic"]
                if name in configured and is_there(topic):
                    self._take_in(topic, *self._configuration_of(name), now)
                    continue
                config = configs.get(name, TopicConfiguration())
                self._configurations.pop(name, None)
                if name in self._doubted and is_there(topic):
                    self._configurations[name] = config
                self._take_in(topic, config, now, now)

    def _configuration_of(self, name: str) -> tuple[TopicConfiguration, float]:
        """Return the known configuration of a topic, and when it was asked for.

        Another answer may have come since that was found to be recent; then it is asked for at the next use.
        """
        config, known = self._configurations.get(name), self._known.get(name)
        if config is None or known is None:
            return TopicConfiguration(), -FRESH_S
        return config, known.asked_at

    def _take_in(self, described: dict[str, Any], config: TopicConfiguration, asked_at: float, now: float) -> None:
        name, known = described["topic"], self._known.get(described["topic"])
        faults: dict[int, str] = {}
        if name in self._denied:
            refusal, until = self._denied[name]
            self._known[name] = refused(refusal, min(now, until - ABSENT_FRESH_S), is_denied=True)
        elif is_missing(described) and self._is_awaited(name, known, now):
            faults = {WHOLE_TOPIC: "it was deleted"}
        elif (refusal_found := refusal_in(described)) is not None:
            self._known[name] = refused(refusal_found, now, is_denied=is_denied(described))
        else:
            faults = faults_of(described, config)
            if is_there(described):
                self._gone.pop(name, None)
                self._known[name] = topic_of(described, config, asked_at)
            elif known is None or known.refusal is not None:
                self._known[name] = unknown(now)
        if name in self._own:
            before = frozenset[int]() if known is None else known.unavailable
            unavailable = self._known[name].unavailable
            self.outages.remember((name, partition) for partition in before | unavailable)
            if before - unavailable:
                self.outages.notify()
        else:
            self.outages.observe(name, faults, self._clock.now())
            known = self._known.get(name)
            # Do not wait for a topic that refuses records, or for partitions that do not exist.
            partitions = 0 if known is None or known.refusal is not None else known.partitions
            if WHOLE_TOPIC not in faults:
                self.outages.close(
                    place for place in self.outages.places if place[0] == name and place[1] >= partitions
                )

    def _is_awaited(self, name: str, known: TargetTopic | None, now: float) -> bool:
        """Return whether a missing topic existed until recently, so that it may be created again."""
        was_there = known is not None and known.refusal is None
        return was_there and name not in self._own and now - self._gone.setdefault(name, now) < GONE_S

    def _make_room(self, needed: Set[str]) -> None:
        if len(self._known) > MOST_KNOWN:
            kept = sorted(self._known.items(), key=lambda item: item[1].asked_at)[len(self._known) - MOST_KNOWN // 2 :]
            waiting = self.outages.topics | {topic for topic, _ in self.trials.places}
            always = self._own | needed | waiting  # waiting schedules are assigned to partitions by these facts
            self._known = dict(kept) | {name: topic for name, topic in self._known.items() if name in always}
            self._gone = {name: since for name, since in self._gone.items() if name in self._known}

    async def _ask(
        self, topics: list[str], configured: Set[str]
    ) -> tuple[list[dict[str, Any]], dict[str, TopicConfiguration]]:
        """Return metadata, and configurations of those not `configured`. Tries other brokers until one answers."""
        while True:
            try:
                admin = await self._connected()
                described = await admin.describe_topics(topics)
                present = [
                    topic["topic"] for topic in described if is_there(topic) and topic["topic"] not in configured
                ]
                return described, await _configs(admin, present) if present else {}
            except (KafkaError, OSError, TimeoutError) as error:
                log.debug("a broker was asked for topics: %r", error)
            await asyncio.sleep(0.05)

    async def _connected(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            admin = AIOKafkaAdminClient(**self._promptness.arguments(self._connection))
            self._promptness.bound(admin._client, ANSWER_S, marks_silent=True)
            try:
                await without_log_fields(admin.start())
            except BaseException:
                await admin.close()
                raise
            self._admin = admin
        return self._admin


async def _configs(admin: AIOKafkaAdminClient, topics: list[str]) -> dict[str, TopicConfiguration]:
    """Return configurations, without topics whose configuration we have no right to read."""
    found: dict[str, TopicConfiguration] = {}
    asked = dict.fromkeys(CONFIGURATION_NAMES)
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, asked) for topic in topics]
    for response in await admin.describe_configs(resources):
        for error_code, _, _, name, configs in (resource[:5] for resource in response.resources):
            if error_code == 0:
                found[name] = configuration_of({config[0]: config[1] for config in configs})
    return found


def _is_fresh(topic: TargetTopic, now: float) -> bool:
    return now - topic.asked_at < (FRESH_S if topic.refusal is None else ABSENT_FRESH_S)
