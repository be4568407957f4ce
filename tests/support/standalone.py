"""A Spark cluster of a master and two workers, started from the pip package, and jobs to run on it.

python -m support.standalone MASTER BOOTSTRAP_SERVERS APP_ID RUN FOLDER     run `results`, and print them as JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from light_scheduler.clock import SettableClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.host.ports import free_port
from light_scheduler.model import TopicNames
from light_scheduler.pipeline import audit, export, load
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.session import SessionOptions, spark_session

from .jobs import START_TIMEOUT_S, quick_environment
from .waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST = "127.0.0.1"
SMALL = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
    "spark.executor.cores": "1",
    "spark.executor.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


@asynccontextmanager
async def standalone(
    folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Run a cluster of workers with a core each; yields its URL once all of them are registered.

    They have this environment's Python and packages, unless variables in `environment` say otherwise.
    """
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, web_port = free_port(), free_port()
    url = f"spark://{HOST}:{port}"
    variables = {
        **quick_environment(),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        **(environment or {}),
    }

    def started(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = stack.enter_context((folder / name.rsplit(".", 1)[-1]).open("ab"))
        command = [str(spark_class), f"org.apache.spark.deploy.{name}", "--host", HOST, *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log, env=variables, cwd=folder)

    with ExitStack() as stack:
        processes = [started("master.Master", "--port", str(port), "--webui-port", str(web_port))]
        stack.callback(end, processes)
        for number in range(workers):
            place = "--work-dir", str(folder / f"work-{number}")
            size = "--cores", "1", "--memory", "1g", "--webui-port", "0"
            processes.append(started("worker.Worker", *size, *place, url))
        await eventually(lambda: alive(web_port) == workers, within=START_TIMEOUT_S, every=0.2, what="all workers")
        yield url


def alive(web_port: int) -> int:
    """Return how many workers a master has."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{web_port}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return 0


def results(spark: SparkSession, bootstrap_servers: str, app_id: str, run: str, folder: Path) -> dict[str, Any]:
    """Load `rows` of a folder into the topic RUN, export what is pending to the folder RUN, audit; return summaries."""
    cluster, names, own = Cluster(bootstrap_servers), TopicNames(app_id), folder / run
    loaded = load.main(
        spark,
        load.LoadOptions(
            table=str(folder / "rows"),
            cluster=cluster,
            commands_topic=run,
            marks_topic=f"{run}-marks",
            refused=str(own / "refused"),
            limits=Limits(1_000_000, 512),
        ),
    )
    table = str(own / "schedules")
    options = export.ExportOptions(table=table, cluster=cluster, app_id=app_id, commands_topics=(names.commands,))
    exported = export.main(spark, options)
    audited = audit.main(
        spark,
        audit.AuditOptions(
            cluster,
            names,
            {names.commands: "native"},
            FiringRules(),
            Limits(1_000_000, 512),
            end=END,
            clock=SettableClock(END),
            since_last=str(own / "state"),
        ),
    )
    return {
        "loaded": asdict(replace(loaded, refused_table=None)),
        "schedules": exported.schedules,
        "audited": asdict(audited),
    }


M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
END = M + 7_200_000


def main() -> None:
    """Run the jobs on a cluster."""
    master, bootstrap_servers, app_id, run, folder = sys.argv[1:]
    with spark_session("standalone", SessionOptions(master=master, memory="700m", configs=SMALL)) as spark:
        sys.stdout.write(json.dumps(results(spark, bootstrap_servers, app_id, run, Path(folder))))


if __name__ == "__main__":
    main()


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End processes, and wait until all of them have."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()
