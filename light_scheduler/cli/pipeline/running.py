"""Runs a job: session, progress, summary, exit code."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

import click
from click.core import ParameterSource

from light_scheduler.cli.options import settings_options
from light_scheduler.cli.output import Output, output_option
from light_scheduler.cli.secret_options import no_secret_property
from light_scheduler.cli.verbosity import error_console, note
from light_scheduler.connection.librdkafka import NO_TOPIC_CREATION
from light_scheduler.errors import JobError
from light_scheduler.host.foreground import StopRequested, stop_signals
from light_scheduler.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from light_scheduler.pipeline.job import Cluster, Progress, Summary

F = TypeVar("F", bound=Callable[..., Any])

Job = Callable[["SparkSession", "Progress"], "Summary"]
Run = Callable[..., None]
"""Call it with a `Job` and with `volume`, a function that returns rows and bytes (None: not counted) of the job's
summary, for metrics. Pass `delta=True` if the job needs Delta Lake."""


_PYTHON_ERROR = re.compile(r"(?!org\.|java\.|scala\.|py4j\.|Caused by)[A-Za-z_][\w.]*(Error|Exception|Loss): ")
_ADVICE = {
    # The last alternative is Python's error for any missing Java class; Python names only Delta's classes.
    re.compile(
        r"(ClassNotFound|NoClassDefFound|catalog plugin class).*delta|data source: delta|'JavaPackage' object"
    ): (
        "Spark does not find Delta Lake: give its jars with --jar, or to spark-submit with --packages "
        "io.delta:delta-spark_4.2_2.13:4.4.0"
    ),
    re.compile(r"Class\S* \S+\.S3AFileSystem not found"): (
        "Spark does not find the file system of s3a://: give the jars of hadoop-aws, of the version of Spark's Hadoop, "
        "with --jar, or to spark-submit with --packages org.apache.hadoop:hadoop-aws:VERSION"
    ),
    re.compile(r"database or disk is full|No space left on device"): (
        "the disk on which Spark keeps temporary files is full: free space on it, or name a folder on a larger one, on "
        "each machine that runs tasks: --spark-conf spark.local.dir=FOLDER"
    ),
    re.compile(r"Malformed records are detected in record parsing: _corrupt_record"): (
        "a line of the table is not JSON: fix it. To leave out such lines, use --read-option mode=DROPMALFORMED"
    ),
    re.compile(
        r"reading file (?P<file>\S+)\..*?Malformed records are detected in record parsing: (?P<row>.*?)\.\s+Parse",
        re.DOTALL,
    ): (
        r"the row \g<row> of \g<file> is malformed: it has more or fewer cells than the header, or is no JSON. Mend it "
        "(text with a comma in it needs quotes). To leave out such rows, use --read-option mode=DROPMALFORMED"
    ),
    re.compile(
        r"CSV header does not conform to the schema\.\s+Header: (?P<header>[^\n]*)\s+Schema: (?P<columns>[^\n]*)"
        r".*?CSV file: (?P<file>[^\n]+)",
        re.DOTALL,
    ): (
        r"\g<file> has the header \g<header>, and the table has the columns \g<columns>: give all files the same "
        "columns in the same order, or load them one by one. To read them by position, use --read-option "
        "enforceSchema=true"
    ),
    re.compile(
        r"Number of column in CSV header is not equal.*?Header length: (?P<header>\d+), schema size: (?P<columns>\d+)"
        r".*?CSV file: (?P<file>[^\n]+)",
        re.DOTALL,
    ): (
        r"\g<file> has a header of \g<header> columns, and the table has \g<columns>: give all files the same columns "
        "in the same order, or load them one by one"
    ),
    re.compile(r"CANNOT_MERGE_SCHEMAS|Failed merging schema"): (
        "files of the table have a column of the same name with different types: write it with one type, or load the "
        "files of each type by themselves. To use the columns of one file, add --read-option mergeSchema=false"
    ),
    re.compile(
        r"CONFLICTING_(DIRECTORY_STRUCTURES|PARTITION_COLUMN_NAMES).*?\t(?P<one>\S*/\S*)\n\t(?P<other>\S*/\S*)",
        re.DOTALL,
    ): (
        r"\g<one> and \g<other> have files, and different columns in their names, such as tenant=...: move files so "
        "that all folders of the table have the same columns, or load the folders one by one. To load all files "
        "without columns in names of folders, use --read-option recursiveFileLookup=true"
    ),
    re.compile(r"assertion failed: Invalid batch: "): (
        "folders with columns in their names, such as tenant=..., have come into the folder since the load began: "
        "start the load again"
    ),
    re.compile(r"FAILED_READ_FILE\.FILE_NOT_EXIST"): (
        "a file of the table is gone: it changed while it was read, or VACUUM of Delta Lake has deleted the version "
        "that the job needs. Run the job again; load such a Delta table under another --name, which sends all rows"
    ),
    re.compile(r"reading file (?P<file>[^\n]+?)\.\s.*?(Could not read footer|is not a Parquet file)", re.DOTALL): (
        r"\g<file> is no whole Parquet file: it is cut off, or has another format. Put a whole copy in its place, or "
        "move it out of the table, and run the job again; name another format with --format"
    ),
}
"""Advice for missing classes, files and disk space, malformed rows, and files that are cut off or inconsistent, by
pattern of the error message. Advice may refer to groups of its pattern."""


class Pairs(click.ParamType):
    """Two parts joined by an equals sign, called `metavar` in help texts. The command receives both parts."""

    def __init__(self, metavar: str = "NAME=VALUE") -> None:
        self.name = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, rest = value.partition("=")
        if not equals or not name:
            self.fail(f"{value!r} is not {self.name}", param, ctx)
        return name, rest


class ReportFile(click.ParamType):
    """A file on this machine, by path or `file:///...` URL, or elsewhere by URL."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        scheme, colon, rest = str(value).partition(":")
        if colon and scheme == "file":
            value = url2pathname(urlsplit(rest).path)
        elif colon and rest.startswith("//"):
            if scheme not in _REPORT_SCHEMES:
                known = ", ".join(f"{each}://" for each in _REPORT_SCHEMES)
                self.fail(f"{value!r} cannot take a report: name a file, or a URL that begins with {known}")
            return str(value)
        return str(click.Path(dir_okay=False).convert(value, param, ctx))


_REPORT_SCHEMES = ("s3", "s3a", "gs", "abfs", "abfss", "hdfs", "viewfs")
"""URL schemes that Arrow can write to."""


def job_options(*settings: str, prints: bool = False) -> Callable[[F], F]:
    """Add the options of all jobs, and those of the settings.

    The command receives `settings: Settings`, `client: dict` (for `cluster_of`) and `run: Run`; and `output: Output` if
    it `prints` data without running a job.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_session(
            *args: Any, settings: Settings, client: tuple[tuple[str, str], ...], output: Output, **kwargs: Any
        ) -> Any:
            asked = _Asked(**{name: kwargs.pop(name) for name in _Asked._fields})
            name = str(click.get_current_context().info_name), settings.app_id

            def run(job: Job, *, volume: _VolumeOf, delta: bool = False) -> None:
                _run(_Task(job, volume, name, delta=delta), asked, output)

            own = {"output": output} if prints else {}
            return function(*args, settings=settings, client=dict(client), run=run, **own, **kwargs)

        command: Any = with_session
        command = output_option()(command)
        for option in reversed(_OPTIONS):
            command = option(command)
        return settings_options("app_id", "broker", *settings)(command)  # type: ignore[no-any-return]

    return decorate


KAFKA_FORMATS = ("auto", "kafka", "light_scheduler_kafka")
"""The formats of `pipeline.topics`, repeated here so that help does not import Spark."""

_VolumeOf = Callable[[Any], tuple[int, int | None]]


class _Asked(NamedTuple):
    """The given options of Spark and of metrics."""

    master: str
    memory: str
    jars: tuple[Path, ...]
    configs: tuple[tuple[str, str], ...]
    kafka_format: str
    metrics_table: str | None
    metrics_format: str
    metrics_file: Path | None

    @property
    def needs_delta(self) -> bool:
        return self.metrics_table is not None and self.metrics_format == "delta"


class _Task(NamedTuple):
    """A job, the volume of its summary, the names of command and application, and whether it needs Delta Lake."""

    job: Job
    volume: _VolumeOf
    name: tuple[str, str]
    delta: bool


_OPTIONS = (
    click.option(
        "--client",
        type=Pairs(),
        multiple=True,
        callback=no_secret_property(
            "use the settings instead, such as sasl_username and sasl_password_file, or ssl_certificate, ssl_key and "
            "ssl_key_password_file (PEM)"
        ),
        help="Kafka client property, by its name in librdkafka or Java: security.protocol=SSL. Can be repeated.",
    ),
    click.option("--master", default="local[*]", show_default=True, help="Spark master: where Spark runs."),
    click.option(
        "--kafka-format",
        type=click.Choice(KAFKA_FORMATS),
        default=KAFKA_FORMATS[0],
        show_default=True,
        help="How Spark reads topics: with its own connector (kafka), with this package's connector, or (auto) "
        "with its own if its jars are on the class path.",
    ),
    click.option("--memory", default="3g", show_default=True, help="Memory of Spark's driver, not counting Python."),
    click.option(
        "--jar",
        "jars",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Add a jar to Spark's class path. Can be repeated.",
    ),
    click.option(
        "--spark-conf",
        "configs",
        type=Pairs(),
        multiple=True,
        callback=no_secret_property("write it into spark-defaults.conf, in the folder that SPARK_CONF_DIR names"),
        help="Spark property. Can be repeated.",
    ),
    click.option(
        "--metrics-table", metavar="TABLE", help="Add rows, bytes, seconds and cost of this run to this table."
    ),
    click.option(
        "--metrics-format",
        type=click.Choice(("parquet", "delta")),
        default="parquet",
        show_default=True,
        help="Format of the metrics table.",
    ),
    click.option(
        "--metrics-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write this run's metrics to this file, for the textfile collector of Prometheus' node exporter (name it "
        "*.prom). An existing file is replaced. Use one file per job.",
    ),
)


report_option = click.option(
    "--report", type=ReportFile(), help="Write the report as HTML to this file: a path on this machine, or a URL."
)


def format_option(help: str, *formats: str) -> Callable[[F], F]:
    """Add the option `--format` with the table formats that a job supports; the first one is the default."""
    return click.option("--format", type=click.Choice(formats), default=formats[0], show_default=True, help=help)


def cluster_of(settings: Settings, client: Mapping[str, str]) -> Cluster:
    """Return the cluster that a job's options name, with its login. `--client` overrides the settings."""
    from light_scheduler.pipeline.job import Cluster
    from light_scheduler.pipeline.kafka.options import CLIENT_PREFIX
    from light_scheduler.pipeline.kafka.security import for_librdkafka

    of_a_cluster = {"bootstrap.servers", *NO_TOPIC_CREATION}
    login = {name: value for name, value in settings.connection.librdkafka().items() if name not in of_a_cluster}
    try:
        own = {name.removeprefix(CLIENT_PREFIX): value for name, value in client.items()}
        return Cluster(settings.bootstrap_servers, {**login, **for_librdkafka(own)})
    except ValueError as error:
        raise JobError(str(error)) from None


def require_with(wanted: str, *names: str) -> None:
    """Raise UsageError if one of these options is given on the command line without the option they belong to."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} has no effect without {wanted}: add {wanted}, or leave it out")


def reason_of(error: Exception) -> str:
    """Return a short reason for an error that contains tracebacks of Python workers and Java: the last line that names
    a Python error, else Java's exception, else the first line. If something is missing, return advice on it instead."""
    text = str(error)
    for pattern, advice in _ADVICE.items():
        if (found := pattern.search(text)) is not None:
            return found.expand(advice)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if _PYTHON_ERROR.match(line)]
    from_java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return named[-1] if named else (from_java or lines or [type(error).__name__])[0]


def _run(task: _Task, asked: _Asked, output: Output) -> None:
    file = asked.metrics_file
    if file is not None and not file.absolute().parent.is_dir():  # fail now, not at the end of the job
        raise JobError(f"--metrics-file {file}: there is no folder {file.absolute().parent}")
    if importlib.util.find_spec("pyspark") is None:
        raise JobError("Spark is not installed: pip install 'light-scheduler[spark]'")
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from rich.console import Console

    from light_scheduler.pipeline.metrics import JobName, Places, Volume, measured
    from light_scheduler.pipeline.session import SessionOptions, is_submitted, spark_session
    from light_scheduler.pipeline.topics import FORMAT_CONFIG

    from .progress import SparkProgress

    configs = {FORMAT_CONFIG: asked.kafka_format, **dict(asked.configs)}
    options = SessionOptions(asked.master, asked.memory, task.delta or asked.needs_delta, asked.jars, configs)
    places = Places(asked.metrics_table, asked.metrics_format, asked.metrics_file)
    try:
        # spark-submit writes Python's standard error to its own standard output.
        console = error_console() if output.is_table or not is_submitted() else Console(quiet=True)
        with stop_signals(), SparkProgress(console) as progress, ExitStack() as stack:
            with progress.phase("Starting Spark"):
                spark = stack.enter_context(spark_session("light-scheduler", options))
            with progress.watching(spark):
                done = measured(
                    spark,
                    JobName(*task.name),
                    places,
                    lambda: task.job(spark, progress),
                    lambda summary: Volume(*task.volume(summary)),
                )
    except (PySparkException, Py4JJavaError) as error:
        raise JobError(reason_of(error)) from error
    except StopRequested:
        note("Stopped.")
        sys.exit(1)
    summary = done.summary
    if output.is_table:
        click.echo("\n".join(summary.lines()))
    else:
        output.print(dataclasses.asdict(summary))
    if done.failure is not None:
        raise done.failure
    if summary.failed:
        sys.exit(1)
