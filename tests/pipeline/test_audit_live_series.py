"""Audits of a series of equal messages that goes on meanwhile, in a topic whose timestamps the broker sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.ledger import Ledger
from support.topic_configs import configure

from light_scheduler.clock import SettableClock, SystemClock
from light_scheduler.model import Headers
from light_scheduler.pipeline.audit import AuditOptions, AuditSummary, main
from light_scheduler.pipeline.audit.sources import Topics
from light_scheduler.pipeline.job import Cluster
from light_scheduler.testing import Kafka
from light_scheduler.wire.content_type import CONTENT_TYPE, JSON_COMMAND

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

SECOND, MINUTE = 1_000, 60_000


def test_a_message_that_comes_while_the_audit_reads_does_not_stand_for_a_missing_one(
    spark: SparkSession, kafka: Kafka, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, begun = Ledger(prefix, dialect="karafka"), SystemClock().now() - 4 * MINUTE
    target = {"target": {"topic": ledger.target}, "payload": {"text": "beat"}}
    command = {"command": "schedule", "id": "beat", "trigger": {"every": "10s"}, **target}
    of_json: Headers = [(CONTENT_TYPE, JSON_COMMAND)]
    ledger.append(ledger.commands, 0, begun, b"beat", json.dumps(command).encode(), of_json)

    def go_on(until: int) -> None:
        ledger.run_until(begun + until)
        ledger.produce(kafka.bootstrap_servers)

    def audit(end: int) -> AuditSummary:
        given: dict[str, Any] = {"end": begun + end, "clock": SettableClock(begun + end + 10 * SECOND)}
        topics = ledger.names, {ledger.commands: "karafka"}, ledger.rules, ledger.limits
        state = str(tmp_path / "state")
        return main(spark, AuditOptions(Cluster(kafka.bootstrap_servers), *topics, since_last=state, **given))

    go_on(MINUTE)
    assert list(audit(MINUTE).faults) == []
    configure(kafka.bootstrap_servers, ledger.target, {"message.timestamp.type": "LogAppendTime"})
    ledger.run_until(begun + 3 * MINUTE)
    (lost,) = [each for each in ledger.of(ledger.target) if each.timestamp == begun + 2 * MINUTE]
    ledger.remove(lost)
    ledger.produce(kafka.bootstrap_servers)
    ask = Topics.open_since

    def ask_and_go_on(self: Topics, topics: Sequence[str]) -> int | None:
        if ledger.target in topics:  # the history has been read
            go_on(4 * MINUTE)
        return ask(self, topics)

    monkeypatch.setattr(Topics, "open_since", ask_and_go_on)
    second = audit(3 * MINUTE - 5 * SECOND)
    assert [(fault.id, fault.kind) for fault in second.faults] == [("beat", "missing")]
    third = audit(4 * MINUTE)
    assert (list(third.faults), third.unjudged) == ([], 0)
