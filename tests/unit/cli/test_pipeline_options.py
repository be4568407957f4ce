"""Options of jobs that are wrong before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.cli.pipeline.running import LocalFile
from light_scheduler.errors import ConfigurationError


def test_the_audit_refuses_topics_whose_messages_have_no_delivery_id() -> None:
    with pytest.raises(ConfigurationError, match="cannot judge topic b"):
        CliRunner().invoke(cli, ["pipeline", "audit", "--commands-topics", "a,b:etf1"], catch_exceptions=False)


@pytest.mark.parametrize("other", [("--from", "2026-11-01T00:00:00Z"), ("--archive", "/data/archive")])
def test_an_audit_that_continues_the_last_one_begins_nowhere_else(other: tuple[str, str]) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "audit", "--since-last", "/data/audits", *other])
    assert ran.exit_code == 2
    assert f"--since-last takes no {other[0]}" in " ".join(ran.output.split())


def test_a_topic_that_is_given_two_names_is_wrong_use() -> None:
    mapped = ["--map-topic", "reminders=one", "--map-topic", "reminders=two"]
    ran = CliRunner().invoke(cli, ["pipeline", "import", "table", *mapped])
    assert ran.exit_code == 2
    assert "--map-topic maps reminders to both one and two" in " ".join(ran.output.split())


@pytest.mark.parametrize("job", ["audit", "forecast", "report"])
def test_a_report_that_is_not_for_this_machine_is_wrong_use(job: str) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", job, "--report", "s3a://bucket/report.html"])
    assert ran.exit_code == 2
    assert "is not on this machine" in " ".join(ran.output.split())


@pytest.mark.parametrize("given", ["/tmp/a report.html", "file:///tmp/a%20report.html", "file:/tmp/a%20report.html"])
def test_a_report_may_be_named_by_a_url(given: str) -> None:
    assert LocalFile().convert(given, None, None) == Path("/tmp/a report.html")
