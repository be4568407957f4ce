"""What the doctor makes of the rights and topics of a job."""

from __future__ import annotations

import pytest

from light_scheduler.doctor.job_checks import check_job_rights, check_job_topics, check_named_targets
from light_scheduler.doctor.named_topics import NamedTopics
from light_scheduler.kafka.job_rights import JOBS, SINCE_LAST, WITH_TARGETS, job_rights
from light_scheduler.kafka.missing_rights import MissingRight
from light_scheduler.kafka.rights import Right
from light_scheduler.settings import Settings

SETTINGS = Settings()
TOPICS = [Right("topic", name, ("Read",)) for name in ("there", "hidden", "absent")]


def test_a_topic_that_does_not_exist_is_warned_of_and_one_that_this_user_may_not_see_is_not() -> None:
    missing = [MissingRight("no right READ on topic hidden", TOPICS[1])]
    (check,) = check_job_topics([*TOPICS, Right("group", "some", ("Read",))], missing, {"there": 4})
    assert (check.name, check.status) == ("topics", "warn")
    assert check.detail.startswith("absent does not exist")


def test_without_the_right_that_only_an_audit_since_the_last_needs_others_run() -> None:
    since_last = MissingRight("no right READ on group", SINCE_LAST)
    (warning,) = check_job_rights(SETTINGS, [since_last])
    assert warning.status == "warn"
    assert "--since-last" in warning.detail
    assert SINCE_LAST.name in (warning.fix or "")
    topic = MissingRight("no right READ on topic there", TOPICS[0])
    assert [check.status for check in check_job_rights(SETTINGS, [topic, since_last])] == ["fail", "warn"]
    assert [check.status for check in check_job_rights(SETTINGS, [])] == ["ok"]


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        (NamedTopics([], [], knows_tenants=False), "this user cannot read light-scheduler-tenants"),
        (NamedTopics([], [], knows_tenants=True), "no rule of a tenant names one"),
    ],
)
def test_rights_on_targets_that_nobody_knows_are_not_ok(named: NamedTopics, reason: str) -> None:
    (check,) = check_named_targets(SETTINGS, named)
    assert check.status == "warn"
    assert check.detail.endswith(reason)
    assert "--target" in (check.fix or "")


def test_targets_that_rules_name_are_known() -> None:
    assert list(check_named_targets(SETTINGS, NamedTopics([], ["bills"], knows_tenants=True))) == []


def test_jobs_with_targets_are_those_that_need_rights_on_them() -> None:
    assert {job for job in JOBS if job_rights(job, SETTINGS, ["t"]) != job_rights(job, SETTINGS)} == WITH_TARGETS
