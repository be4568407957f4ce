"""What the doctor makes of what it is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from light_scheduler.clock import SettableClock
from light_scheduler.doctor.check import check_certificate
from light_scheduler.doctor.kafka_checks import check_replicas, check_target_topics
from light_scheduler.doctor.worker_checks import check_targets
from light_scheduler.kafka.replicas import FrailTopics
from light_scheduler.lanes.context.status import TargetStatus


@pytest.mark.parametrize(
    ("nodes", "frail", "named"),
    [
        (1, FrailTopics(["orders"], ["bills"]), {"the cluster has one node": "ok"}),
        (3, FrailTopics([], []), {"every topic stays writable when a node goes down": "ok"}),
        (3, FrailTopics(["orders"], []), {"topics with one replica: orders.": "warn"}),
        (3, FrailTopics(list("abcde"), []), {"topics with one replica: a, b, c, d, e.": "warn"}),
        (3, FrailTopics(list("abcdefg"), []), {"topics with one replica: a, b, c, d, e and 2 more.": "warn"}),
        (
            2,
            FrailTopics(["orders"], ["bills"]),
            {
                "topics with one replica": "warn",
                "topics whose min.insync.replicas equals their number of replicas: bills.": "warn",
            },
        ),
    ],
)
def test_topics_that_cannot_lose_a_node_are_warned_of_where_there_are_several(
    nodes: int, frail: FrailTopics, named: dict[str, str]
) -> None:
    for check, (detail, status) in zip(check_replicas(nodes, frail), named.items(), strict=True):
        assert check.status == status
        assert check.detail.startswith(detail)
        assert (check.fix is None) == (status == "ok")


@pytest.mark.parametrize(("days", "status"), [(15, "ok"), (13, "warn"), (-1, "fail")])
def test_a_certificate_is_warned_of_before_it_ends(days: int, status: str) -> None:
    now = 1_767_225_600_000
    check = check_certificate("ssl_certificate", Path("worker.pem"), now + days * 86_400_000, SettableClock(now))
    assert check.status == status
    assert check.detail.startswith("ssl_certificate worker.pem is valid until 202")
    assert check.fix == (None if status == "ok" else "renew worker.pem. Workers use the new file without a restart")


def unavailable(topic: str, waiting: int, partitions: list[int]) -> TargetStatus:
    return TargetStatus(
        topic=topic,
        partitions=partitions,
        unavailable_since=1_767_225_600_000,
        waiting=waiting,
        reason="it has no leader",
    )


def test_targets_that_are_unavailable_are_warned_of_with_what_to_do() -> None:
    statuses = [unavailable("orders", 0, [2, 5]), unavailable("mails", 1_742, []), unavailable("logs", 1_000, [0])]
    checks = list(check_targets(msgspec.to_builtins({"lanes": [], "targets": statuses})))
    assert [(check.name, check.status, check.detail) for check in checks] == [
        (
            "targets",
            "warn",
            "mails: unavailable since 2026-01-01T00:00:00.000Z, waiting firings: 1,742; it has no leader",
        ),
        (
            "targets",
            "warn",
            "logs, partition 0: unavailable since 2026-01-01T00:00:00.000Z, waiting firings: 1,000; it has no leader",
        ),
        (
            "targets",
            "warn",
            "orders, partitions 2, 5: unavailable since 2026-01-01T00:00:00.000Z, waiting firings: 0; it has no leader",
        ),
    ]
    assert "kafka-topics.sh --describe --topic mails" in (checks[0].fix or "")


def test_of_many_targets_those_with_the_most_waiting_firings_are_listed() -> None:
    statuses = [unavailable(f"t{number}", number, list(range(12))) for number in range(9)]
    checks = list(check_targets(msgspec.to_builtins({"lanes": [], "targets": statuses})))
    assert [check.detail.partition(":")[0] for check in checks] == [
        *(f"t{number}, partitions 0, 1, 2, 3, 4 and 7 more" for number in (8, 7, 6, 5, 4)),
        "4 more topics are unavailable",
    ]


def test_without_unavailable_targets_all_is_well_and_without_a_worker_nothing_is_said() -> None:
    assert [check.status for check in check_targets({"lanes": [], "targets": []})] == ["ok"]
    assert list(check_targets({})) == []


def test_given_targets_that_do_not_exist_are_warned_of_unless_this_user_may_not_see_them() -> None:
    (check,) = check_target_topics(["there", "typo", "hidden"], {"there": 4}, {"hidden"})
    assert (check.status, check.detail) == ("warn", "typo does not exist, so rights on it were not checked")
