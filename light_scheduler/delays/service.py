"""The delays of a worker: the rules, the assigned partitions, and a lane for each pair of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka import TopicPartition
from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.engine.delays import retention_problem
from light_scheduler.errors import BrokerError, SchedulerError
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.compacted import Change, CompactedTopic
from light_scheduler.kafka.retrying import repeat
from light_scheduler.kafka.supervision import CLOSE_TIMEOUT_S
from light_scheduler.kafka.targets import Targets
from light_scheduler.kafka.topic_admin import topic_configuration
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.model import DelayRule, Requester, RuleBook
from light_scheduler.model.delay import check_rule, rule_book
from light_scheduler.settings import Settings
from light_scheduler.wire import change_record, delay_changes
from light_scheduler.wire.delays import encode_rule

from .lane import DelayLane, DelayServices
from .membership import Membership
from .positions import Positions
from .status import DelayLaneStatus, DelayView
from .stored_rules import stored_rules

LOOK_S = 2.0
"""How often missing source topics are looked up again."""

log = logging.getLogger(__name__)


class RuleFromConfigurationError(SchedulerError):
    """A rule from the configuration cannot be changed while workers run."""

    def __init__(self, name: str) -> None:
        super().__init__(f"rule {name} is in the workers' configuration (setting delays): change it there")


class _NothingToChange(Exception):
    """The rules are already as requested."""


class Delays(Service):
    """Runs beside the scheduler's own lanes, on the same event loop."""

    def __init__(self, settings: Settings, clock: Clock, **options: Any) -> None:
        super().__init__(**options)
        self._settings = settings
        names, connection = settings.topics, settings.connection
        self._log = CompactedTopic(connection, names.delays, names.history)
        self._clock = clock
        self._book = rule_book(settings.delays, ())
        self._warnings: dict[DelayRule, list[str]] = {}
        self._targets = Targets(connection)
        self._changed = asyncio.Event()
        self._membership = Membership(settings, self._changed.set)
        self._lanes: dict[tuple[DelayRule, TopicPartition], DelayLane] = {}
        self._closing: dict[tuple[str, TopicPartition], asyncio.Task[None]] = {}
        self._writing = asyncio.Lock()
        self._running: list[asyncio.Future[Any]] = []
        self._clients = KafkaClients(connection, settings.transaction_timeout)
        self._services = DelayServices(
            connection,
            names,
            self._clients,
            settings.tick,
            clock,
            self._targets,
            Positions(connection, names.delay_positions),
            TopicIds(self._clients.topic_id, time.monotonic),
            self._membership.confirm,
            self.crash,
        )

    # -- what others ask ----------------------------------------------------------------------------------------------

    @property
    def book(self) -> RuleBook:
        """The rules, in force and refused."""
        return self._book

    def views(self) -> list[DelayView]:
        """Return all rules, by name."""
        book = self._book
        views = [self._view(rule, None) for rule in book.rules.values()]
        views += [self._view(rule, reason) for rule, reason in book.refused.values()]
        return sorted(views, key=lambda view: view.name)

    def lanes(self) -> list[DelayLaneStatus]:
        """Return what this worker's lanes are doing."""
        return [lane.status() for lane in self._lanes.values()]

    async def put(self, rule: DelayRule, *, by: Requester) -> bool:
        """Add a rule, or replace the one with its name. Return whether it is new. It is in force on return.

        The history records the change. Raises RuleError if the rule conflicts with others, RuleFromConfigurationError,
        BrokerError.
        """
        is_new = False

        def put() -> Change:
            nonlocal is_new
            book = self._book
            check_rule(rule, book.rules.values(), self._settings.reserved_topics)
            if book.rules.get(rule.name) == rule:
                raise _NothingToChange
            is_new = rule.name not in book.rules
            return Change([encode_rule(rule)], self._event(delay_changes.put(self._known(rule.name), rule), by))

        return await self._change(rule.name, put) and is_new

    async def remove(self, name: str, *, by: Requester) -> bool:
        """Remove a rule. Return whether it existed. The history records the change.

        Raises RuleFromConfigurationError, BrokerError.
        """

        def remove() -> Change:
            if (rule := self._known(name)) is None:
                raise _NothingToChange
            return Change([(name.encode(), None)], self._event(delay_changes.removed(rule), by))

        return await self._change(name, remove)

    async def _change(self, name: str, make: Callable[[], Change]) -> bool:
        """Change a rule. Return whether there was anything to change.

        `make` is called once all earlier changes by any worker are known, and decides on that basis.
        """
        async with self._writing:
            self._check_loaded()
            if name in self._book.configured:
                raise RuleFromConfigurationError(name)
            try:
                await self._log.change(make)
            except _NothingToChange:
                return False
            return True

    def _known(self, name: str) -> DelayRule | None:
        """Return a rule, in force or refused; None if there is none."""
        refused, _ = self._book.refused.get(name, (None, ""))
        return self._book.rules.get(name, refused)

    def _event(self, reason: str, by: Requester) -> tuple[bytes, bytes]:
        return change_record("", reason, by, self._clock.now())

    def _check_loaded(self) -> None:
        if not self._log.is_loaded:
            raise BrokerError("the delay rules have not been read yet; try again")

    def _view(self, rule: DelayRule, refused: str | None) -> DelayView:
        return DelayView(
            name=rule.name,
            source=rule.source,
            delay=rule.delay,
            target=rule.target,
            origin="configuration" if rule.name in self._book.configured else "topic",
            refused=refused,
            warnings=self._warnings.get(rule, []),
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    async def on_start(self) -> None:
        self._running = [
            self.add_future(repeat(self._follow, "following the delay rules", self, log)),
            self.add_future(repeat(self._keep_up, "delays", self, log)),
        ]

    async def on_stop(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        for key in list(self._lanes):
            self._close(key)
        if self._closing:
            await asyncio.wait(self._closing.values(), timeout=CLOSE_TIMEOUT_S + 5.0)
        await self._membership.leave()
        await self._targets.close()
        await self._clients.close()

    async def _follow(self) -> None:
        await self._log.follow(self._rules_changed)

    def _rules_changed(self) -> None:
        self._book = rule_book(self._settings.delays, stored_rules(self._log.entries), self._settings.reserved_topics)
        for name, (_, reason) in self._book.refused.items():
            log.warning("delay rule %s is not in force: %s", name, reason)
        self._changed.set()

    async def _keep_up(self) -> None:
        """React to changes of rules, topics and assignments."""
        self._changed.clear()
        if self._log.is_loaded:
            rules = tuple(self._book.rules.values())  # rules that arrive meanwhile are for the next turn
            sources = {rule.source for rule in rules}
            await self._targets.resolve(sources)
            await self._membership.subscribe(frozenset(name for name in sources if not self._targets[name].refusal))
            self._match_lanes()
            await self._warn(rules)
        try:
            async with asyncio.timeout(LOOK_S):
                await self._changed.wait()
        except TimeoutError:
            return

    def _match_lanes(self) -> None:
        wanted = {
            (rule, tp)
            for rule in self._book.rules.values()
            for tp in self._membership.assigned
            if tp.topic == rule.source
        }
        for key in self._lanes.keys() - wanted:
            self._close(key)
        for rule, tp in sorted(wanted - self._lanes.keys(), key=lambda key: (key[0].name, key[1])):
            lane = self._lanes[rule, tp] = DelayLane(rule, tp, self._services)
            lane.start(self._closing.get((rule.name, tp)))

    def _close(self, key: tuple[DelayRule, TopicPartition]) -> None:
        place = key[0].name, key[1]
        task = asyncio.create_task(self._lanes.pop(key).close(), name=f"closing delay {place}")
        self._closing[place] = task
        task.add_done_callback(lambda done: self._closing.pop(place) if self._closing.get(place) is done else None)

    async def _warn(self, rules: Iterable[DelayRule]) -> None:
        """Check the retention of each rule's source once, and store the problems for later requests."""
        connection = self._settings.connection
        for rule in rules:
            if rule not in self._warnings and not self._targets[rule.source].refusal:
                problem = retention_problem(rule, await asyncio.to_thread(topic_configuration, connection, rule.source))
                self._warnings[rule] = [] if problem is None else [problem]
                if problem is not None:
                    log.warning("delay rule %s: %s", rule.name, problem)
        self._warnings = {rule: self._warnings[rule] for rule in self._book.rules.values() if rule in self._warnings}
