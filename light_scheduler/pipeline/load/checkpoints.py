"""The default place of the checkpoint of a continuous load of files.

Spark can be configured with a folder for the checkpoints of all streams. A load has its own subfolder there. Its name
depends on everything that decides which files are read and which rows are sent, so another load does not skip files.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from light_scheduler.errors import JobError
from light_scheduler.pipeline.tables import located
from light_scheduler.pipeline.topics import cluster_id

from .files import path_digest
from .marks import key_of
from .options import LoadOptions

CONFIG = "spark.sql.streaming.checkpointLocation"


def configured_checkpoint(spark: SparkSession, options: LoadOptions) -> str | None:
    """Return the checkpoint of a load in Spark's configured folder; None if no folder is configured.

    Raises JobError as `located`, and if there is no broker.
    """
    if not (folder := spark.conf.get(CONFIG, None)):
        return None
    try:
        place = located(spark, folder)
    except JobError as error:
        raise JobError(f"{CONFIG} cannot be used: {error}") from error
    return place_in(place, options, located(spark, options.table), cluster_id(options.cluster))


def place_in(folder: str, options: LoadOptions, table: str, cluster: str) -> str:
    """Return the path of a load's checkpoint in a folder. `table` is the absolute path of its files, `cluster` an
    id."""
    read = sorted((name.lower(), value) for name, value in options.reading.items())
    sent = *options.scope, options.marks_topic, cluster, *(["sends past"] if options.sends_past else [])
    key = key_of(*sent, path_digest(table), options.format, read, sorted(options.ignored))
    return f"{folder.rstrip('/')}/light-scheduler-load-{key.hex()}"
