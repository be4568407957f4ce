"""Dagster assets of the jobs on Spark: an archive, and a report on it; an audit; a schedule for all of them.

Load it with `dagster dev -f dagster_jobs.py`, where `light-scheduler[spark]` and a Java 17 or newer are installed. Each
asset runs a command and uses its `--json` output as metadata. An exit code other than 0 fails the asset.
"""

from __future__ import annotations

import json
import shlex
import subprocess

import dagster as dg

METRICS = "--metrics-table /data/metrics"


def run(context: dg.AssetExecutionContext, command: str) -> dg.MaterializeResult:
    """Run a job; its summary is the metadata of the asset. Raises Failure for an exit code other than 0."""
    ran = subprocess.run(shlex.split(f"{command} {METRICS} --json"), capture_output=True, text=True, check=False)
    context.log.info(ran.stderr)
    if ran.returncode:
        raise dg.Failure(f"exit code {ran.returncode}: {ran.stdout or ran.stderr}")
    numbers = {name: value for name, value in json.loads(ran.stdout).items() if isinstance(value, int | str)}
    return dg.MaterializeResult(metadata=numbers)


@dg.asset
def archive(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Commands, history, results and dead letters, each record once."""
    return run(context, "light-scheduler pipeline archive /data/archive --vacuum 7d")


@dg.asset(deps=[archive])
def lateness(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """How late deliveries were."""
    return run(context, "light-scheduler pipeline report --archive /data/archive --report /data/report.html")


@dg.asset
def faults(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Deliveries that differ from the commands, since the last audit."""
    return run(context, "light-scheduler pipeline audit --since-last /data/audits --report /data/audit.html")


daily = dg.define_asset_job("light_scheduler_daily", selection=[archive, lateness, faults])
# One run at a time: two archives into the same table, or two audits with the same state, would interfere.
defs = dg.Definitions(
    assets=[archive, lateness, faults],
    jobs=[daily],
    schedules=[dg.ScheduleDefinition(job=daily, cron_schedule="0 3 * * *")],
    executor=dg.in_process_executor,
)
