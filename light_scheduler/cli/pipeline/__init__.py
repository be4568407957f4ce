"""`light-scheduler pipeline`: jobs on Spark. Each is the module of its name."""

from __future__ import annotations

import click

from light_scheduler.cli.lazy import LazyGroup

# Job -> (module in this package, one line of help).
JOBS = {
    "archive": ("archive", "Keep topics in a lake table, record for record."),
    "audit": ("audit", "Hold what was delivered against what was promised."),
    "forecast": ("forecast", "Tell how much is due in each minute ahead."),
    "report": ("report", "Tell how punctual deliveries were."),
    "load": ("load", "Load schedules from a table."),
    "export": ("export", "Write all pending schedules to a table."),
    "import": ("importing", "Restore what was exported, here or in another cluster."),
}


@click.group("pipeline", cls=LazyGroup, package=__name__, modules=JOBS)
def command() -> None:
    """Jobs on Spark: on this machine, or on a cluster by spark-submit.

    They need the extra `spark` and a Java 17 or newer.
    """
