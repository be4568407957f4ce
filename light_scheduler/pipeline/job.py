"""The common interface of all jobs.

A job is a module, or a package, with

    main(spark: SparkSession, options: SomeOptions, progress: Progress = SILENT) -> SomeSummary

`SomeOptions` is a frozen dataclass; `SomeSummary` is one too, and a `Summary`. A job raises JobError if it cannot do
its work, leaves the session as it was, and prints nothing. The command line (`cli.pipeline`) converts arguments to
options, starts the session, shows progress, prints the summary and exits with 1 if the job `failed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from light_scheduler.connection.librdkafka import NO_TOPIC_CREATION


class Summary(Protocol):
    """The result of a job. Its fields are the JSON document that `--json` prints."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def failed(self) -> bool:
        """Whether something is wrong: then the command's exit code is 1."""
        ...

    def lines(self) -> list[str]:
        """Return the result in words, one line for each fact."""
        ...


class Progress(Protocol):
    """Reports the phases of a job."""

    def phase(self, text: str) -> AbstractContextManager[None]:
        """Show a phase, such as `Reading schedules`, until the block ends. Spark knows its progress."""
        ...


class Silence:
    """A progress that shows nothing."""

    def phase(self, text: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()


SILENT = Silence()


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster: `host:port,host:port`, and further client options, with librdkafka's names."""

    bootstrap_servers: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    def options(self) -> dict[str, str]:
        """Return the cluster as options of a Kafka format."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **self.client_options()}

    def client_options(self) -> dict[str, str]:
        """Return the client options, without the address, as options of a Kafka format."""
        return {f"kafka.{name}": value for name, value in self.client.items()}

    def configuration(self) -> dict[str, str | int | float | bool]:
        """Return the cluster as the configuration of a confluent-kafka client."""
        return {"bootstrap.servers": self.bootstrap_servers, **NO_TOPIC_CREATION, **self.client}


def parallelism(spark: SparkSession) -> int | None:
    """Return the number of tasks that run at once; None with Spark Connect, where it is unknown."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:
        return None


@contextmanager
def configured(spark: SparkSession, configs: Mapping[str, str]) -> Iterator[None]:
    """Change a session's configuration within a block."""
    before = {name: spark.conf.get(name, None) for name in configs}
    for name, value in configs.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)
