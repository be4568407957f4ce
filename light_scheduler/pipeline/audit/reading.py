"""Reading an application's topics as evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.errors import JobError
from light_scheduler.pipeline.exported import read_export
from light_scheduler.pipeline.import_decisions import adopting_topics

from . import gathering
from .bounds import Bounds, Horizon
from .changes import NO_CHANGES, Changes, ToldChange
from .claims import CHANGED
from .commands_topics import CommandsTopics
from .evidence import HISTORY
from .forwarding import Forwarding, routes_with
from .options import AuditOptions, Imported
from .owners import OtherDialects
from .period import require_readable
from .readings import Reading
from .sources import Log, Source
from .stops import TenantStops
from .terms import Terms
from .verdict_table import kept

LONGEST_TRANSACTION_MS = 900_000
"""How long brokers let a transaction be open unless they are configured otherwise."""


class Evidence:
    """Reads an application's topics, those first whose records promise what those after them must hold."""

    def __init__(
        self,
        spark: SparkSession,
        source: Source,
        options: AuditOptions,
        now: int,
        stack: ExitStack,
        before: Changes = NO_CHANGES,
    ) -> None:
        self._spark = spark
        self._source = source
        self._options = options
        self._now = now
        self._stack = stack
        self._targets: Sequence[str] = ()
        self._schedules: DataFrame | None = None
        """Those that bulk commands may be for, once commands were read; None: there are none of these."""
        self.changes = before._replace(routes=routes_with(options.delays, before.routes))
        """What history tells of changes, once it has been read; before that, what it told audits before."""
        self.whole_since: Mapping[str, int] = {}
        """Since when (UTC epoch ms) each topic has all that was written to it, once the terms are known."""
        self._inputs = list(options.inputs)
        self._others = OtherDialects.among(options.inputs)
        self._history, self._dead_letters = options.names.history, options.names.dead_letters
        own = [self._history, self._dead_letters]
        self._open_since = [source.open_since(own)]  # before it is known what there is to read
        self._logs = source.logs([*self._inputs, *own])
        for topic in (*self._inputs, self._history):
            if topic not in self._logs:
                raise JobError(f"there is no topic {topic}: is {options.names.app_id} the id of the application?")

    def promised(self, carried: DataFrame | None = None) -> DataFrame:
        """Return history and commands; bulk commands are for schedules that were `carried` over too."""
        options = self._options
        of_history = self._source.evidence([self._history], Reading("history")).select(*gathering.OF_HISTORY)
        of_history = kept(of_history, self._stack)
        history = gathering.widened(of_history.where(~gathering.is_change()), HISTORY)
        # History first: all that it tells of is among the commands that are read after it, and in the targets.
        told = gathering.targets_and_changes(of_history).collect()
        self._targets = sorted({row.target for row in told if row.target is not None} | set(options.targets))
        changes = sorted((row for row in told if row.claim is not None), key=lambda row: (row.partition, row.offset))
        reasons = (bytes(row.claim).removeprefix(CHANGED).decode() for row in changes)
        self.changes = self.changes.after(
            [ToldChange(row.tenant, row.at, reason) for row, reason in zip(changes, reasons, strict=True)]
        )
        self._open_since.append(self._source.open_since(self._targets))
        self._logs = {**self._logs, **self._source.logs(self._targets)}
        commands = self._source.evidence(self._inputs, Reading("commands", options.inputs, options.limits))
        if options.imported is not None and carried is None:
            commands = commands.unionByName(self._imported(options.imported, history))
        commands = gathering.widened(kept(commands.select(*gathering.OF_COMMANDS), self._stack))
        # Not whether it is empty, which Spark asks of one partition after the other.
        prefixes = commands.select("prefix")
        prefixes = prefixes if carried is None else prefixes.unionByName(carried.select("prefix"))
        many = prefixes.agg(F.max(F.col("prefix").isNotNull()).alias("any")).first()
        if many is not None and many["any"]:
            self._schedules = kept(gathering.schedules_of(commands, carried), self._stack)
            commands = commands.unionByName(kept(gathering.for_many(commands, self._schedules), self._stack))
        return history.unionByName(commands)

    def _imported(self, imported: Imported, history: DataFrame) -> DataFrame:
        table = read_export(self._spark, imported.table, imported.format)
        sources = [row.commands_topic for row in table.select("commands_topic").distinct().collect()]
        topics = adopting_topics(sources, self._inputs, imported.topics)
        partitions = {topic: self._logs[topic].partitions for topic in self._inputs}
        rows = gathering.imported(table, topics, imported.topics, partitions, self._others)
        return gathering.widened(gathering.where_told(rows, history))

    def readable(self, bounds: Bounds, since: int) -> Bounds:
        """Return bounds that end before open transactions, which hide what came after they began.

        Raises JobError if nothing is left from an instant on (UTC epoch ms). Timestamps can be any; those that are
        older than a transaction can be count as that old.
        """
        if not (opened := [at for at in self._open_since if at is not None]):
            return bounds
        opened_at = max(min(opened), self._now - LONGEST_TRANSACTION_MS)
        bounds = bounds._replace(end=min(bounds.end, opened_at - self._options.settle))
        require_readable(bounds, since, opened_at)
        return bounds

    def terms(self, bounds: Bounds) -> Terms:
        """Return what holds for all schedules."""
        there = [topic for topic in self._targets if topic in self._logs and not self._logs[topic].is_compacted]
        own = [topic for topic in (*self._inputs, self._history, self._dead_letters) if topic in self._logs]
        begins = {topic: self._begins(topic) for topic in {*own, *there}}
        self.whole_since = {topic: max(begun.values(), default=0) for topic, begun in begins.items()}
        targets = {topic: max(self.whole_since[topic], bounds.first_read) for topic in there}
        horizon = Horizon(
            targets,
            self.whole_since.get(self._dead_letters),
            begins[self._history],
            self._logs[self._history].partitions if self._logs[self._history].truncated else None,
        )
        return Terms(
            self._options.rules,
            bounds,
            horizon,
            self._commands_topics(),
            replays_all=self._options.replays_all,
            stops=TenantStops(self.changes.stops),
            forwarding=Forwarding(chain.from_iterable(self.changes.routes.values())),
        )

    def _commands_topics(self) -> CommandsTopics:
        compacted = frozenset(topic for topic in self._inputs if self._may_be_compacted(topic))
        whole_since = {
            topic: self._now if topic in compacted else max(self.whole_since[each] for each in (topic, self._history))
            for topic in self._inputs
        }
        return CommandsTopics(self._inputs[0], self._others, whole_since, compacted)

    def _may_be_compacted(self, topic: str) -> bool:
        """Return whether commands may have been compacted away.

        An archive does not say it: of topics in dialects of other schedulers, whose projects recommend it, it may be.
        """
        is_likely = self._options.archive is not None and self._others.of(topic) is not None
        return is_likely or self._logs[topic].is_compacted

    def delivered(self, bounds: Bounds) -> list[DataFrame]:
        """Return what is in the target topics and among the dead letters, as far as they are there."""
        there = [topic for topic in self._targets if topic in self._logs]
        tables = []
        if there:
            tables.append(
                self._source.evidence(there, Reading("messages", self._options.inputs), bounds.first_read or None)
            )
        if self._dead_letters in self._logs:
            letters = gathering.dead_letters(self._source.read([self._dead_letters]))
            if self._schedules is not None:
                letters = letters.unionByName(gathering.letters_for_many(letters, self._schedules))
            tables.append(letters)
        return tables

    def _begins(self, topic: str) -> dict[int, int]:
        """Return since when (UTC epoch ms) partitions of a topic have all that was written to them.

        There are those that have lost their beginning; or, if only the whole topic is known, one that stands for all.
        """
        log: Log = self._logs[topic]
        if not log.truncated:
            return {0: log.whole_since} if log.whole_since else {}
        firsts = self._source.firsts(topic, log.truncated)
        return {partition: firsts.get(partition, self._now) for partition in log.truncated}
