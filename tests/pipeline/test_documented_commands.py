"""Every snippet of docs/pipeline.md, in its order, against a real Kafka: what a reader copies has to run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession
from support.ledger import Ledger
from support.snippets import Snippet, comparable, lines_of, snippets

from light_scheduler.cli import cli
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.settings import ENVIRONMENT_PREFIX
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(1_800)]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline.md"
COMMAND = "light-scheduler pipeline "
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
OF_SOME_RUNS = re.compile(r" \(\d+ paused\)|(?<=^Events).*")
LINES_OF_SOME_RUNS = ("altered ", "Faults: ", "The busiest minute ")
M = 1_793_491_200_000
"""2026-11-01T00:00Z, where the page's examples begin."""
HOUR = 3_600_000
REFUSES = (
    "light-scheduler pipeline load schedules.parquet --refused refused",
    "light-scheduler pipeline load /data/incoming --format json --continuous --refused /data/refused-later",
)
"""Each of these refuses a row."""


def commands_of(snippet: Snippet) -> list[str]:
    """Return the jobs of a shell block; tests/pipeline/test_packed_executors.py packs."""
    lines = lines_of(snippet.text) if snippet.language == "sh" else []
    return [line for line in lines if line.startswith(COMMAND) and not line.startswith(f"{COMMAND}pack ")]


def sentences(output: str) -> set[str]:
    """Return what a job prints, without its numbers and folders, and without what only some runs have to say."""
    text = "\n".join(comparable(output)).replace(f"{Path.cwd()}/", "").replace("/data/", "")
    lines = (NUMBER.sub("N", OF_SOME_RUNS.sub("", line)) for line in text.splitlines())
    return {line for line in lines if line and not line.startswith(LINES_OF_SOME_RUNS)}


@pytest.fixture
def current_schema(spark: SparkSession, prefix: str, tmp_path: Path) -> Iterator[str]:
    """A schema of the catalog for what the page calls `table:NAME`."""
    name = prefix.replace("-", "_")
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path}/schema'")
    spark.sql(f"USE {name}")
    yield name
    spark.sql("USE default")
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def application(
    spark: SparkSession,
    this_session: None,
    current_schema: str,
    kafka: Kafka,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Ledger:
    """An application with what the page's commands name, and its folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}APP_ID", prefix)
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}BROKER", f"kafka://{kafka.bootstrap_servers}")
    ledger = Ledger(prefix)
    ledger.target = f"{prefix}-reminders"
    for number in range(20):
        ledger.send(f"s-{number}", M, ("at", M + HOUR + number))
    ledger.send("rate", M, ("every", "6h"), ("max-firings", 3))
    ledger.send("ahead", M, ("at", "2030-01-01T00:00:00Z"))
    ledger.run(M)
    ledger.run_until(M + 30 * HOUR)
    ledger.produce(kafka.bootstrap_servers)
    compacted = {"cleanup.policy": "compact"}
    create_topic(kafka.bootstrap_servers, ledger.names.results, 1)
    create_topic(kafka.bootstrap_servers, ledger.names.loads, 1, configs=compacted)
    other = Ledger(f"{prefix}-2").names
    create_topic(kafka.bootstrap_servers, other.commands, ledger.partitions)
    create_topic(kafka.bootstrap_servers, other.changelog(other.commands), ledger.partitions, configs=compacted)
    create_topic(kafka.bootstrap_servers, f"{ledger.target}-2", 1)
    rows = [{"id": f"r-{number}", "at": "2030-01-01T00:00:00Z", "payload": "x"} for number in range(4)]
    text = "id,at,payload\n" + "".join(f"{row['id']},{row['at']},x\n" for row in rows)
    (tmp_path / "reminders.csv").write_text(text)
    (tmp_path / "with-remarks.csv").write_text("remark," + text.replace("\nr-", "\nwhy,q-"))
    (tmp_path / "incoming").mkdir()
    targets = [{**row, "target-topic": ledger.target} for row in rows]
    lines = "".join(json.dumps(row) + "\n" for row in targets)
    (tmp_path / "reminders.json").write_text(lines)
    (tmp_path / "incoming" / "reminders.json").write_text(f'{lines}{{"id": "malformed\n')
    refused = [*targets, {**targets[0], "at": "soon"}]
    spark.createDataFrame(refused).coalesce(1).write.parquet(str(tmp_path / "schedules.parquet"))
    return ledger


def run(command: str, ledger: Ledger, kafka: Kafka) -> Result:
    """Run a command with the page's names of places replaced by what stands for them here."""
    environment: dict[str, str | None] = {}
    if "//new-cluster:" in command:
        environment[f"{ENVIRONMENT_PREFIX}APP_ID"] = f"{ledger.names.app_id}-2"
    arguments = [placed(argument, ledger, kafka) for argument in shlex.split(command)[1:]]
    # Java keeps the working directory that it began with.
    if "--table" in arguments:
        arguments[arguments.index("--table") + 1] = str(Path.cwd() / "minutes")
    if "--continuous" not in arguments:
        return CliRunner().invoke(cli, arguments, env=environment)
    with ctrl_c_after_a_commit(Path(arguments[-1] if "load" in arguments else arguments[2])):
        return CliRunner().invoke(cli, arguments, env=environment)


def placed(argument: str, ledger: Ledger, kafka: Kafka) -> str:
    """Return what stands here for a word of a documented command."""
    argument = argument.replace("kafka://new-cluster:9092", f"kafka://{kafka.bootstrap_servers}")
    argument = re.sub(r"(?<==)reminders|^reminders$|^reminders(?==)", ledger.target, argument)
    if argument == "refused" or re.search(r"^[\w-]+\.(parquet|csv|json)$", argument):
        return str(Path.cwd() / argument)
    return argument.replace("s3a://bucket/", f"{Path.cwd()}/bucket-").replace("/data/", f"{Path.cwd()}/")


@contextmanager
def ctrl_c_after_a_commit(table: Path) -> Iterator[None]:
    ended = threading.Event()

    def wait() -> None:
        while not ended.wait(0.1):
            if list((table / "_delta_log").glob("*.json")) or (table / "_SUCCESS").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def placed_python(code: str, ledger: Ledger, kafka: Kafka) -> str:
    """Return a fragment with what stands here for its files, topics and broker."""
    code = re.sub(r'parquet\("([^/"]+)"\)', rf'parquet("{Path.cwd()}/\1")', code)
    code = code.replace("/data/", f"{Path.cwd()}/").replace("127.0.0.1:9092", kafka.bootstrap_servers)
    return code.replace("light-scheduler-history", ledger.names.history)


@pytest.mark.soak
def test_every_snippet_of_the_page_runs_and_ends_as_it_says(
    application: Ledger, kafka: Kafka, spark: SparkSession, tmp_path: Path
) -> None:
    jobs = set()
    for snippet in snippets(PAGE):
        printed: set[str] = set()
        for command in commands_of(snippet):
            jobs.add(shlex.split(command)[2])
            ran = run(command, application, kafka)
            assert ran.exit_code == (command in REFUSES), f"{command}\n{ran.output}\n{ran.exception!r}"
            if "--json" in command:
                json.loads(ran.stdout)
            printed |= sentences(ran.output)
        assert sentences(snippet.shown or "") - printed == set(), printed
    assert jobs == {"load", "export", "import", "archive", "audit", "forecast", "report", "views"}
    for page in ("audit.html", "load.html", "punctuality.html"):
        assert (tmp_path / page).read_text().startswith("<!doctype html>")
    malformed = spark.read.parquet(str(tmp_path / "refused-later")).where("content IS NULL")
    assert malformed.count() == 1
    malformed.write.mode("append").parquet(str(tmp_path / "refused"))
    names: dict[str, Any] = {"spark": spark}
    for snippet in snippets(PAGE):
        if snippet.language == "python":
            exec(placed_python(snippet.text, application, kafka), names)
        elif snippet.language == "sql":
            assert spark.sql(snippet.text).count() > 0
    assert names["history"].count() > 0
    corrected = spark.read.parquet(str(tmp_path / "corrected.parquet")).collect()
    assert [(row.id, row.at) for row in corrected] == [("r-0", "soon")]
