"""SQL views over an archive, as statements of Spark SQL, which the job `views` prints or creates.

They read the history in the archive. Columns by which the archive is partitioned are also columns of the views, so that
a filter on `date` (and on `tenant`, if the archive is partitioned by it) skips files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .job import SILENT, Progress
from .tables import catalog_name, located, valid_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVENT = (
    "event string, id string, version bigint, due bigint, at bigint, sequence bigint, attempt int, "
    "target_topic string, reason string, partition int, count bigint"
)


class View(NamedTuple):
    """A view: its description, its columns with descriptions, and its query of `events` or `delivered`."""

    comment: str
    columns: Mapping[str, str]
    query: str


_EVENTS = """\
events AS (
  SELECT {fields}, date, `offset`
  FROM (
    SELECT from_json(CAST(value AS STRING), '{schema}') AS event, date, `offset`{partitioned}
    FROM {archive}
    WHERE topic = '{history}'
  )
)"""

_DELIVERED = """\
delivered AS (
  SELECT tenant, id, version, sequence, attempt, target_topic, `partition` AS commands_partition,
    timestamp_millis(due) AS due, timestamp_millis(at) AS fired_at, at - due AS lateness_ms, date
  FROM events
  WHERE event = 'fired'
)"""

VIEWS = {
    "schedules": View(
        "One row for each schedule: what the history says of it",
        {
            "tenant": "The tenant",
            "id": "The id of the schedule",
            "version": "Its last version",
            "target_topic": "Where it is delivered to, by its last event that names a topic",
            "first_event_at": "When its history begins in the archive",
            "last_event": "The type of its last event: scheduled, fired, cancelled, ...",
            "last_event_at": "When that was",
            "last_due": "The due time in its last event; null if no firing was planned",
            "firings": "How often it was delivered, later attempts included",
        },
        """\
SELECT tenant, id,
  max_by(version, place) FILTER (WHERE version IS NOT NULL) AS version,
  max_by(target_topic, place) FILTER (WHERE target_topic IS NOT NULL) AS target_topic,
  timestamp_millis(min(at)) AS first_event_at,
  max_by(event, place) AS last_event,
  timestamp_millis(max(at)) AS last_event_at,
  timestamp_millis(max_by(due, place)) AS last_due,
  count_if(event = 'fired') AS firings
FROM (SELECT *, struct(at, `offset`) AS place FROM events)
WHERE id IS NOT NULL AND (id NOT LIKE '%*' OR version IS NOT NULL) AND event NOT IN ('changed', 'rejected')
GROUP BY tenant, id""",
    ),
    "firings": View(
        "One row for each delivered message",
        {
            "tenant": "The tenant",
            "id": "The id of the schedule",
            "version": "The version of the schedule that fired",
            "sequence": "The number of the firing in its series, from 1",
            "attempt": "Which attempt it is, from 1",
            "target_topic": "Where it was delivered to",
            "commands_partition": "The partition of the commands topic that the schedule is in",
            "due": "When it was due",
            "fired_at": "When the transaction was made that delivered it",
            "lateness_ms": "fired_at minus due, in ms",
            "date": "The day (UTC) of the record in the history. Filter by it to read few files",
        },
        "SELECT * FROM delivered",
    ),
    "lateness": View(
        "How late first attempts were in each hour, by tenant and target topic",
        {
            "date": "The day (UTC) of the records in the history. Filter by it to read few files",
            "hour": "When the hour of the deliveries begins",
            "tenant": "The tenant",
            "target_topic": "Where they were delivered to",
            "firings": "The number of deliveries",
            "p50_ms": "The median of the lateness, in ms",
            "p90_ms": "The 90th percentile",
            "p99_ms": "The 99th percentile",
            "max_ms": "The highest",
        },
        """\
SELECT date, hour, tenant, target_topic, firings, levels[0] AS p50_ms, levels[1] AS p90_ms, levels[2] AS p99_ms, max_ms
FROM (
  SELECT date, timestamp_millis(unix_millis(fired_at) - pmod(unix_millis(fired_at), 3600000)) AS hour, tenant,
    target_topic, count(*) AS firings, percentile_approx(lateness_ms, array(0.5, 0.9, 0.99), 10000) AS levels,
    max(lateness_ms) AS max_ms
  FROM delivered
  WHERE attempt = 1
  GROUP BY ALL
)""",
    ),
}


class ViewsOptions(NamedTuple):
    """Options of views over the archive at a path, or with a name (`table:NAME`).

    `history` is the history's topic. The views are created in a `schema` of the catalog, or in the current one. If the
    archive is partitioned `by_tenant`, it has a column for it.
    """

    archive: str
    history: str
    schema: str | None = None
    by_tenant: bool = False


@dataclass(frozen=True)
class ViewsSummary:
    """The names of the created views, and whether they end with the session, whose catalog is in memory."""

    views: tuple[str, ...]
    temporary: bool

    @property
    def failed(self) -> bool:
        return False

    def lines(self) -> list[str]:
        made = [f"Created {', '.join(self.views)}"]
        if self.temporary:
            made.append(
                "The catalog of this session is in memory, so the views are gone when the session ends. Give it one "
                "that lasts: --spark-conf spark.sql.catalogImplementation=hive"
            )
        return made


def main(spark: SparkSession, options: ViewsOptions, progress: Progress = SILENT) -> ViewsSummary:
    """Create the views, replacing existing ones. Raises JobError if there is no such archive."""
    archive = options.archive if catalog_name(options.archive) else located(spark, options.archive)
    made = list(statements(options._replace(archive=archive)))
    with progress.phase("Creating views"):
        for statement in made:
            spark.sql(statement)
    # With a default given here, Spark would not return its own.
    in_memory = spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
    return ViewsSummary(tuple(_named(name, options.schema) for name in VIEWS), in_memory)


def statements(options: ViewsOptions) -> Iterator[str]:
    """Yield a statement for each view. Raises JobError if a name is invalid."""
    # Otherwise two columns with the same name would be ambiguous.
    schema, partitioned, fields = (
        (_EVENT, ", tenant", "tenant, event.*") if options.by_tenant else (f"tenant string, {_EVENT}", "", "event.*")
    )
    events = _EVENTS.format(
        archive=_relation(options.archive),
        history=options.history,
        schema=schema,
        fields=fields,
        partitioned=partitioned,
    )
    for name, view in VIEWS.items():
        parts = [events, _DELIVERED] if "delivered" in view.query else [events]
        columns = ",\n".join(f"  {column} COMMENT '{text}'" for column, text in view.columns.items())
        yield (
            f"CREATE OR REPLACE VIEW {_named(name, options.schema)} (\n{columns}\n)\n"
            f"COMMENT '{view.comment}' AS\nWITH {', '.join(parts)}\n{view.query}"
        )


def _relation(archive: str) -> str:
    name = catalog_name(archive)
    return name if name is not None else f"delta.`{archive.replace('`', '``')}`"


def _named(view: str, schema: str | None) -> str:
    return view if schema is None else f"{valid_name(schema)}.{view}"
