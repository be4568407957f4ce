"""What a job `archive` ends with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaException

from light_scheduler.pipeline import archive
from light_scheduler.pipeline.archive import ArchiveOptions, main
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.losses import LossWatch

FAILED = RuntimeError("the query failed")
NO_JVM = RuntimeError("nobody answers")


class Query:
    """A streaming query that ends at once, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure
        self.is_stopped = False

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 (Spark's names)
        if self._failure is not None:
            raise self._failure
        return True

    @property
    def lastProgress(self) -> None:  # noqa: N802
        if self._failure is not None:
            raise NO_JVM

    def stop(self) -> None:
        self.is_stopped = True


class Looks(LossWatch):
    def __init__(self) -> None:
        self.looks = 0

    def look(self, *_: Any, **__: Any) -> None:
        self.looks += 1
        raise KafkaException("away")


Run = Callable[[Query], Any]


@pytest.fixture
def looks() -> Looks:
    return Looks()


@pytest.fixture
def run(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the job with a query, in place of Spark, Kafka and a table."""

    @contextmanager
    def losses(*_: Any) -> Iterator[LossWatch]:
        yield looks

    def job(query: Query) -> Any:
        monkeypatch.setattr(archive, "_start", lambda *_: query)
        spark: Any = None
        return main(spark, ArchiveOptions(Cluster("127.0.0.1:9"), ["orders"], "/lake", allow_data_loss=True))

    for name in ("require_topic", "_version"):
        monkeypatch.setattr(archive, name, lambda *_: None)
    monkeypatch.setattr(archive, "located", lambda _, path: path)
    monkeypatch.setattr(archive, "noting_losses", losses)
    return job


def test_what_a_query_fails_of_is_told_though_nobody_answers_any_more(run: Run, looks: Looks) -> None:
    query = Query(FAILED)
    with pytest.raises(RuntimeError) as failed:
        run(query)
    assert failed.value is FAILED
    assert (query.is_stopped, looks.looks) == (True, 0)


def test_losses_are_looked_for_a_last_time_when_the_query_has_ended(
    run: Run, looks: Looks, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query()
    assert run(query).records == 0
    assert (query.is_stopped, looks.looks, len(caplog.records)) == (True, 1, 1)
