"""What an audit says if Kafka does not answer what it asks about topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from support.imitated_kafka import imitated_kafka

from light_scheduler.errors import JobError
from light_scheduler.pipeline.audit import sources
from light_scheduler.pipeline.audit.continuing import ContinuedTopics
from light_scheduler.pipeline.audit.sources import Source, Topics
from light_scheduler.pipeline.job import Cluster

TOPIC = "orders"

ASKED: dict[str, Callable[[Source], object]] = {
    "first records": lambda source: source.firsts(TOPIC, [0]),
    "open transactions": lambda source: source.open_since([TOPIC]),
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with imitated_kafka(TOPIC) as address:
        yield Cluster(address)


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("continues", [False, True], ids=["once", "since last"])
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TimeoutError("orders-0[0, 1): no record arrived within 120000 ms"), "does not answer: .*Run the audit again"),
        (KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)), "cannot be asked: .*[Aa]uthorization"),
    ],
    ids=["no answer", "refused"],
)
def test_an_audit_says_what_to_do_if_records_that_it_asks_for_do_not_come(
    ask: Callable[[Source], object],
    continues: bool,
    error: Exception,
    told: str,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(sources, "first_timestamps", fail)
    # Neither asks Spark for anything.
    source = ContinuedTopics(None, cluster, None, []) if continues else Topics(None, cluster)  # type: ignore[arg-type]
    with pytest.raises(JobError, match=f"^{cluster.bootstrap_servers} {told}"):
        ask(source)
