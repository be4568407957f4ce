"""`light-scheduler pipeline`: jobs on Spark, each in the module of its name."""

from __future__ import annotations

import click

from light_scheduler.cli.lazy import LazyGroup

# Job -> (module in this package, one line of help).
JOBS = {
    "archive": ("archive", "Copy topics into a Delta table, each record once."),
    "audit": ("audit", "Compare what was delivered with what was commanded."),
    "forecast": ("forecast", "Count what is due in each minute ahead."),
    "report": ("report", "Measure how late deliveries were."),
    "load": ("load", "Load schedules from a table."),
    "export": ("export", "Write all pending schedules to a table."),
    "pack": ("pack", "Pack this package for the executors of a cluster."),
    "views": ("views", "Print or create SQL views over an archive."),
    "import": ("importing", "Restore an export, in the same or another cluster."),
}


@click.group("pipeline", cls=LazyGroup, package=__name__, modules=JOBS)
def command() -> None:
    """Run jobs on Spark: on this machine, or on a cluster with spark-submit.

    Jobs need the extra `spark` and Java 17 or newer.
    """
