"""An Airflow DAG of the jobs on Spark: a load each hour; archive, audit and report each day.

Put it into the folder of DAGs. The commands run where Airflow's workers have `light-scheduler[spark]` and a Java 17 or
newer, or set the pool and queue of machines that have. An exit code other than 0 fails the task: 1 means that the job
failed, refused rows or found faults. All jobs can be run again: a load sends no row twice, an archive has each record
once. But for a load of a Delta table, or an audit since the last one, only the first try reports refused rows or
faults: a second try finds nothing new, and would succeed. So these two have no retries.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

SETTINGS = {
    "LIGHT_SCHEDULER_BROKER": "kafka://kafka-1:9092",
    "LIGHT_SCHEDULER_APP_ID": "light-scheduler",
}
METRICS = "--metrics-table /data/metrics --metrics-file /var/lib/node_exporter/{{ task.task_id }}.prom"
FIRST_DAY = datetime(2026, 11, 1)


def job(name: str, command: str, retries: int = 2) -> BashOperator:
    """Return a task that runs a job. Airflow ends it with SIGTERM if it takes too long."""
    return BashOperator(
        task_id=name,
        bash_command=f"exec {command} {METRICS}",
        env=SETTINGS,
        append_env=True,
        retries=retries,
        retry_delay=timedelta(minutes=5),
        execution_timeout=timedelta(hours=6),
    )


with DAG("light_scheduler_load", schedule="@hourly", start_date=FIRST_DAY, catchup=False, max_active_runs=1):
    job("load", "light-scheduler pipeline load /data/reminders --format delta --refused /data/refused", retries=0)

# One run at a time: two archives into the same table, or two audits with the same state, would interfere.
with DAG("light_scheduler_daily", schedule="@daily", start_date=FIRST_DAY, catchup=False, max_active_runs=1):
    archive = job("archive", "light-scheduler pipeline archive /data/archive --vacuum 7d")
    job("audit", "light-scheduler pipeline audit --since-last /data/audits --report /data/audit.html", retries=0)
    report = job("report", "light-scheduler pipeline report --archive /data/archive --report /data/report.html")
    archive >> report
