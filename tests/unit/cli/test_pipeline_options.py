"""Options of jobs that are wrong before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.cli.pipeline.running import ReportFile
from light_scheduler.errors import ConfigurationError, JobError


def test_the_audit_takes_the_workers_own_commands_topics_in_whatever_dialects() -> None:
    topics = "a,b:json,c:etf1,d:karafka,e:skyuk,f:light4j"
    ran = CliRunner().invoke(cli, ["pipeline", "audit", "--commands-topics", topics, "--broker", "none"])
    assert isinstance(ran.exception, ConfigurationError), ran.output  # of the broker, and after all else
    assert ran.exception.setting == "--broker"


@pytest.mark.parametrize("other", [("--from", "2026-11-01T00:00:00Z"), ("--archive", "/data/archive")])
def test_an_audit_that_continues_the_last_one_begins_nowhere_else(other: tuple[str, str]) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "audit", "--since-last", "/data/audits", *other])
    assert ran.exit_code == 2
    assert f"--since-last takes no {other[0]}" in " ".join(ran.output.split())


def test_only_deletions_from_a_delta_table_can_be_seen() -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "load", "table", "--cancel-deleted"])
    assert ran.exit_code == 2
    assert "--cancel-deleted needs --format delta" in " ".join(ran.output.split())


@pytest.mark.parametrize("other", [("--dry-run",), ("--read-option", "versionAsOf=3")])
def test_what_was_deleted_is_told_by_the_last_load_only(other: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "load", "table", "--format", "delta", "--cancel-deleted", *other])
    assert ran.exit_code == 2
    assert "--cancel-deleted compares with the last load: leave out" in " ".join(ran.output.split())


def test_the_statements_of_views_are_a_document_if_one_is_asked_for() -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "views", "/data/archive", "--json"])
    assert ran.exit_code == 0
    assert [text.split()[4] for text in json.loads(ran.stdout)["statements"]] == ["schedules", "firings", "lateness"]


def test_a_topic_that_is_given_two_names_is_wrong_use() -> None:
    mapped = ["--map-topic", "reminders=one", "--map-topic", "reminders=two"]
    ran = CliRunner().invoke(cli, ["pipeline", "import", "table", *mapped])
    assert ran.exit_code == 2
    assert "--map-topic maps reminders to both one and two" in " ".join(ran.output.split())


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "kafka.sasl.password",
        "sasl.jaas.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.key.pem",
    ],
)
def test_a_secret_of_kafka_in_an_option_is_refused_with_a_way_out(name: str) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "forecast", "--client", f"{name}=planted"])
    assert ran.exit_code == 2
    told = " ".join(ran.stderr.split())
    assert f"every user of this machine can read {name} in an option" in told
    assert "sasl_password_file" in told
    assert "planted" not in told


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "spark.hadoop.fs.azure.account.oauth2.client.secret.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.user.password.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.refresh.token.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.fixed.token.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.exports.shop.blob.core.windows.net",
        "spark.hadoop.fs.azure.sas.token.shop.blob.core.windows.net",
        "spark.hadoop.fs.azure.encryption.encoded.client-provided-key.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.client-provided-encryption-key",
        "spark.ssl.keyPassword",
        "spark.authenticate.secret",
    ],
)
def test_a_secret_of_spark_in_an_option_is_refused_with_a_way_out(name: str) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "forecast", "--spark-conf", f"{name}=planted"])
    assert ran.exit_code == 2
    told = " ".join(ran.stderr.split())
    assert "write it into spark-defaults.conf, in the folder that SPARK_CONF_DIR names" in told
    assert "planted" not in told


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--client", "security.protocol"),
        ("--client", "ssl.ca.pem"),
        ("--client", "ssl.key.location"),
        ("--client", "sasl.oauthbearer.token.endpoint.url"),
        ("--spark-conf", "spark.local.dir"),
        ("--spark-conf", "spark.authenticate.secret.file"),
        ("--spark-conf", "spark.hadoop.fs.azure.account.auth.type.shop.dfs.core.windows.net"),
        ("--spark-conf", "spark.hadoop.fs.azure.account.keyprovider.shop.dfs.core.windows.net"),
        ("--spark-conf", "spark.hadoop.fs.azure.account.oauth2.client.id.shop.dfs.core.windows.net"),
        ("--spark-conf", "spark.hadoop.fs.azure.account.oauth2.client.endpoint.shop.dfs.core.windows.net"),
        ("--spark-conf", "spark.hadoop.fs.azure.account.oauth2.refresh.token.endpoint"),
        ("--spark-conf", "spark.hadoop.fs.azure.account.oauth2.token.file.shop.dfs.core.windows.net"),
        ("--spark-conf", "spark.hadoop.fs.azure.sas.token.provider.type.shop.dfs.core.windows.net"),
        ("--spark-conf", "spark.hadoop.fs.azure.sas.token.renew.period.for.streams"),
    ],
)
def test_what_is_no_secret_is_an_option(option: str, name: str) -> None:
    # The broker is refused after the options have been read.
    ran = CliRunner().invoke(cli, ["pipeline", "forecast", option, f"{name}=x", "--broker", "none"])
    assert isinstance(ran.exception, ConfigurationError), ran.output
    assert ran.exception.setting == "--broker"


def test_a_vacuum_that_could_take_files_from_readers_is_wrong_use() -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "archive", "/data/archive", "--vacuum", "6d"])
    assert ran.exit_code == 2
    assert "--vacuum must be at least 7d" in ran.output


def test_metrics_in_a_folder_that_is_not_there_are_refused_before_the_job(tmp_path: Path) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "report", "--metrics-file", str(tmp_path / "nowhere" / "report.prom")])
    assert isinstance(ran.exception, JobError)
    assert "there is no folder" in str(ran.exception)


@pytest.mark.parametrize(
    ("more", "why"), [((), "needs --refused"), (("--refused", "x", "--dry-run"), "takes no --dry-run")]
)
def test_a_load_that_goes_on_sends_and_keeps_what_it_refuses(more: tuple[str, ...], why: str) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", "load", "table", "--continuous", *more])
    assert ran.exit_code == 2
    assert f"--continuous {why}" in ran.output


@pytest.mark.parametrize("job", ["audit", "forecast", "report"])
def test_a_report_to_where_none_can_be_written_is_wrong_use(job: str) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", job, "--report", "dbfs://bucket/report.html"])
    assert ran.exit_code == 2
    assert "name a file, or a URL that begins with s3://" in " ".join(ran.output.split())


def test_a_report_may_be_in_an_object_store() -> None:
    assert ReportFile().convert("s3a://bucket/report.html", None, None) == "s3a://bucket/report.html"


@pytest.mark.parametrize("given", ["/tmp/a report.html", "file:///tmp/a%20report.html", "file:/tmp/a%20report.html"])
def test_a_report_may_be_named_by_a_url(given: str) -> None:
    assert ReportFile().convert(given, None, None) == "/tmp/a report.html"


@pytest.mark.parametrize(
    ("arguments", "option", "wanted"),
    [
        (["load", "table", "--every", "5s"], "--every", "--continuous"),
        (["load", "table", "--checkpoint", "x"], "--checkpoint", "--continuous"),
        (["archive", "table", "--compact-every", "5m"], "--compact-every", "--continuous"),
        (["audit", "--map-topic", "a=b"], "--map-topic", "--imported"),
        (["audit", "--imported-format", "delta"], "--imported-format", "--imported"),
    ],
)
def test_an_option_that_means_nothing_without_another_is_wrong_use(
    arguments: list[str], option: str, wanted: str
) -> None:
    ran = CliRunner().invoke(cli, ["pipeline", *arguments])
    assert ran.exit_code == 2
    assert f"{option} has no effect without {wanted}" in " ".join(ran.output.split())


def test_a_delta_table_has_no_checkpoint_of_a_stream() -> None:
    options = ["--format", "delta", "--continuous", "--refused", "x", "--checkpoint", "y"]
    ran = CliRunner().invoke(cli, ["pipeline", "load", "table", *options])
    assert ran.exit_code == 2
    assert "--checkpoint is for files" in ran.output
