"""Jobs on Spark Connect: python -m support.connected BOOTSTRAP_SERVERS APP_ID FOLDER

Forecasts, exports, loads `rows.parquet` of the folder and audits, in a session that has nothing of Java. Prints the
summaries as JSON, and why a copy of the export that is not whole is not imported.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from light_scheduler.clock import SettableClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import JobError
from light_scheduler.model import TopicNames
from light_scheduler.pipeline import audit, export, forecast, importing, load
from light_scheduler.pipeline.job import Cluster

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
HOUR = 3_600_000
END = M + 2 * HOUR
LIMITS = Limits(1_000_000, 512)


def main() -> None:
    """Run the jobs."""
    servers, app_id, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    cluster, names, clock = Cluster(servers), TopicNames(app_id), SettableClock(END)
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    forecasting = forecast.ForecastOptions(cluster, names, [names.commands], ahead=2 * HOUR, clock=clock)
    exporting = export.ExportOptions(
        table=str(folder / "schedules"), cluster=cluster, app_id=app_id, commands_topics=(names.commands,)
    )
    loading = load.LoadOptions(
        table=str(folder / "rows.parquet"),
        cluster=cluster,
        commands_topic=f"{app_id}-loaded",
        marks_topic=names.loads,
        refused=str(folder / "refused"),
        limits=LIMITS,
    )
    auditing = audit.AuditOptions(
        cluster, names, {names.commands: "native"}, FiringRules(), LIMITS, end=END, clock=clock
    )
    said = {
        "forecast": asdict(forecast.main(spark, forecasting)),
        "export": asdict(export.main(spark, exporting)),
        "import": refusal_of_a_part(spark, exporting, folder / "part"),
        "load": asdict(load.main(spark, loading)),
        "audit": asdict(audit.main(spark, auditing)),
    }
    spark.stop()
    sys.stdout.write(json.dumps(said))


def refusal_of_a_part(spark: SparkSession, exported: export.ExportOptions, part: Path) -> str:
    """Return why an import refuses what an export has left that was killed."""
    shutil.copytree(exported.table, part, ignore=shutil.ignore_patterns("_SUCCESS", "._SUCCESS.crc"))
    options = importing.ImportOptions(
        table=str(part), cluster=exported.cluster, app_id=exported.app_id, commands_topics=exported.commands_topics
    )
    try:
        importing.main(spark, options)
    except JobError as error:
        return str(error)
    return "imported"


if __name__ == "__main__":
    main()
