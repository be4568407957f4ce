"""Commands that send: their options are the headers, and what is wrong is said before a broker is asked."""

from __future__ import annotations

import click
import pytest
import yaml
from click.testing import CliRunner

from light_scheduler.cli import cli, main
from light_scheduler.cli.answers import report
from light_scheduler.cli.output import Output
from light_scheduler.contexts import OUTPUT_FORMATS
from light_scheduler.errors import BrokerError
from light_scheduler.model import Outcome, Result
from light_scheduler.wire.fields import RULES

NOBODY = ("--broker", "kafka://127.0.0.1:9")


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {option.removeprefix("--") for parameter in command.params for option in parameter.opts}


def test_schedule_takes_every_header_of_the_command() -> None:
    of_others = {"command", "firing-id", "attempt", "completion", "reply-topic", "reply-partition", "correlation-id"}
    assert RULES.keys() - of_others <= options_of("schedule")


def test_preview_and_reschedule_take_the_time_rules_that_schedule_takes() -> None:
    rule = options_of("schedule") & options_of("reschedule") & options_of("preview")
    assert {"at", "every", "cron", "cron-dialect", "timezone", "backoff", "jitter", "misfire", "on-past"} <= rule


def test_preview_takes_all_headers_that_schedule_takes() -> None:
    assert (RULES.keys() | {"key"}) & options_of("schedule") <= options_of("preview")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["schedule", "--target-topic", "a b"], "--target-topic: 'a b' is not a topic name"),
        (["schedule", "--target-topic", "t", "--cron", "x", "--at", "1"], "--at: 1 looks like seconds"),
        (["schedule", "--target-topic", "t", "--mode", "fixed-rate"], "--mode: needs --every"),
        (
            ["schedule", "--target-topic", "t", "--cron", "61 * * * *"],
            "--cron: not a unix cron expression: minute 61 is",
        ),
        (
            ["schedule", "--target-topic", "t", "--cron", "61 * * * *"],
            "is not in 0-59 (column 1) (given: '61 * * * *')",
        ),
        (["schedule", "--target-topic", "t", "--cron", "0 0 30 2 *"], "--cron: leaves no instant at which"),
        (["schedule", "--target-topic", "t", "--cron", "@daily", "--timezone", "Mars"], "--timezone: 'Mars' is not"),
        (["schedule", "--target-topic", "t", "--after", "3000000d"], "--after: ends after the year 9999"),
        (
            ["schedule", "--target-topic", "t", "--every", "1h", "--end", "2020-01-01T00:00:00Z"],
            "--end: leaves no instant at which",
        ),
        (["reschedule", "a", "--cron", "* * *"], "--cron: not a unix cron expression: it has 3 fields"),
        (["reschedule", "--prefix", "a", "--cron", "* * *"], "--cron: not a unix cron expression: it has 3 fields"),
        (["schedule", "--target-topic", "t", "--overlap", "skip"], "--overlap: needs --ack-timeout"),
        (["schedule", "--target-topic", "t", "--payload", "a", "--payload-null"], "a message has one payload"),
        (["schedule", "--target-topic", "t", "--target-key", "a", "--target-key-base64", "YQ=="], "one key"),
        (["schedule", "--target-topic", "t", "--target-key-base64", "?"], "--target-key-base64"),
        (["schedule", "--target-topic", "t", "--header", "schedule-at=1"], "--header: schedule-at: header names"),
        (["schedule", "--target-topic", "t", "--priority", "300"], "--priority: '300' is not a whole number"),
        (["reschedule", "a"], "--at: is required, or one of --after, --at, --backoff, --cron, --every"),
        (["reschedule", "a", "--every", "0"], "--every: must be at least 1 ms"),
        (["pause", "a", "--expected-version", "0"], "--expected-version: '0' is not a whole number"),
        (["extend", "a"], "FIRING_ID: 'a' is not the id of a firing"),
        (["extend", "a@1767225600000", "--ack-timeout", "0"], "--ack-timeout: must be"),
        (["complete", "a"], "FIRING_ID: 'a' is not the id of a firing"),
        (["trigger", "a", "--tenant", "?"], "--tenant: '?' is not a tenant name"),
        (["cancel"], "Missing argument 'ID'. To select several schedules, use --prefix, --label or --all"),
        (["cancel", "a", "--all"], "ID and --prefix, --label or --all are given together"),
        (["pause", "a", "--prefix", "b"], "name one schedule, or select several"),
        (["resume", "order-*"], "ID must not end in *. To select several schedules, use --prefix or --all"),
        (["cancel", "--all", "--label", "a=b"], "--all selects all schedules of the tenant: leave out --prefix"),
        (["cancel", "--label", "a"], "Invalid value for '--label': 'a' is not a label"),
        (["cancel", "--label", "a=b", "--label", "a=c"], "label 'a' is given twice"),
        (["trigger", "--prefix", "a", "--key", "k"], "--key cannot be used with --prefix, --label or --all"),
        (
            ["cancel", "--prefix", "a", "--expected-version", "1"],
            "--expected-version cannot be used with --prefix, --label or --all",
        ),
        (["reschedule", "--prefix", "a"], "--at: is required, or one of --after"),
        (["reschedule", "--at", "0"], "Missing argument 'ID'"),
    ],
)
def test_a_command_that_cannot_be_right_is_wrong_use(arguments: list[str], error: str) -> None:
    result = CliRunner().invoke(cli, [*arguments, *NOBODY])
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            ["schedule", "--target-topic", "t", option, "30"]
            for option in (
                *("--after", "--every", "--backoff", "--jitter", "--window", "--misfire-grace", "--on-past"),
                *("--ttl", "--ack-timeout", "--timeout"),
            )
        ),
        ["preview", "--every", "30"],
        ["reschedule", "a", "--after", "30"],
        ["cancel", "a", "--timeout", "30"],
        ["delays", "add", "r", "--source", "a", "--target", "b", "--delay", "30"],
        ["bench", "steady", "--grid", "30"],
        ["bench", "steady", "--stage-ahead", "30"],
        ["bench", "chaos", "--pause", "30"],
        ["pipeline", "audit", "--late", "30"],
        ["pipeline", "forecast", "--ahead", "30"],
        ["pipeline", "archive", "x", "--compact-every", "30"],
        ["doctor", "--session-timeout", "30"],
        ["worker", "--tick", "30"],
        ["worker", "--delays", "r=a:30:b"],
    ],
    ids=" ".join,
)
def test_a_duration_without_a_unit_is_wrong_use_of_every_option(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["light-scheduler", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    output = capsys.readouterr()
    option = next(argument for argument in reversed(arguments) if argument.startswith("--"))
    assert output.out == ""
    assert option in output.err
    assert "30s" in output.err


@pytest.mark.parametrize("backoff", ["1s,2", "initial=5 factor=2", "initial=5s max=3600"])
def test_every_interval_of_a_backoff_has_a_unit(backoff: str) -> None:
    result = CliRunner().invoke(cli, ["preview", "--backoff", backoff])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'--backoff': " in result.stderr
    assert "has no unit" in result.stderr


@pytest.mark.parametrize("name", ["cancel", "pause", "resume", "trigger", "reschedule"])
def test_all_schedules_are_meant_only_if_that_is_confirmed(name: str) -> None:
    rule = ["--after", "1h"] if name == "reschedule" else []
    arguments = [name, "--all", *rule, "--tenant", "acme", *NOBODY]
    refused = CliRunner().invoke(cli, arguments, input="n\n")
    assert refused.exit_code == 1
    assert f"{name.capitalize()} all schedules of tenant acme? [y/N]" in refused.stderr
    assert CliRunner().invoke(cli, arguments).exit_code == 1, "nobody was there to say so"
    for confirmed, said in (([*arguments, "--yes"], ""), (arguments, "y\n")):
        result = CliRunner().invoke(cli, confirmed, input=said)
        assert isinstance(result.exception, BrokerError)


def result(outcome: Outcome, reason: str | None = None, field: str | None = None) -> Result:
    return Result("schedule", "default", "a", outcome, version=1, reason=reason, field=field)


@pytest.mark.parametrize("format", OUTPUT_FORMATS)
def test_the_reason_of_a_success_is_a_warning_beside_the_answer(
    format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report(result(Outcome.SCHEDULED, "topic t does not exist"), Output(format))
    output, errors = capsys.readouterr()
    assert errors == "warning: topic t does not exist\n"
    if format == "table":
        assert output == "scheduled default/a version 1\n"
    else:  # JSON is YAML
        assert yaml.safe_load(output)["reason"] == "topic t does not exist"


def test_the_reason_of_a_failure_is_part_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        report(result(Outcome.REJECTED, "no"), Output("table"))
    assert capsys.readouterr() == ("rejected default/a version 1 (no)\n", "")


@pytest.mark.parametrize(
    ("field", "reason", "told"),
    [
        ("schedule-target-topic", "is required", "--target-topic: is required"),
        ("schedule-at", "is given together with schedule-cron", "--at: is given together with --cron"),
        ("quota.max_pending", "tenant a may have 3", "quota.max_pending: tenant a may have 3"),
    ],
)
def test_the_reason_of_a_failure_names_options(
    field: str, reason: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = cli.get_command(click.Context(cli), "schedule")
    assert schedule is not None
    with click.Context(schedule), pytest.raises(SystemExit):
        report(result(Outcome.REJECTED, reason, field), Output("table"))
    assert capsys.readouterr().out == f"rejected default/a version 1 ({told})\n"


@pytest.mark.parametrize("format", OUTPUT_FORMATS)
@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.RESCHEDULED, "rescheduled"),
        (Outcome.TRIGGERED, "triggered: fires at once"),
        (Outcome.UPDATED, "extended: attempt 2 is still being processed"),
        (Outcome.COMPLETED, "failure"),
    ],
)
def test_a_reason_that_repeats_the_command_is_no_warning(
    outcome: Outcome, reason: str, format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report(result(outcome, reason), Output(format))
    output, errors = capsys.readouterr()
    assert errors == ""
    if format == "table":
        assert output == f"{outcome} default/a version 1\n"
    else:
        assert yaml.safe_load(output)["reason"] == reason


@pytest.mark.parametrize(
    ("outcome", "reason", "warning"),
    [
        (Outcome.RESCHEDULED, "rescheduled: its new times have been delivered", "its new times have been delivered"),
        (Outcome.RESCHEDULED, "partition 1 has not confirmed the command", "partition 1 has not confirmed the command"),
        (Outcome.TRIGGERED, "was already triggered: it fires only once", "was already triggered: it fires only once"),
    ],
)
def test_a_reason_that_says_more_than_the_command_is_a_warning(
    outcome: Outcome, reason: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report(result(outcome, reason), Output("table"))
    assert capsys.readouterr() == (f"{outcome} default/a version 1\n", f"warning: {warning}\n")


def test_a_success_without_a_reason_warns_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    report(result(Outcome.SCHEDULED), Output("table"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["shedule"], "No such command 'shedule'. Did you mean 'schedule'?"),
        (["topics", "creat"], "No such command 'creat'. Did you mean 'create'?"),
        (["delays", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["pipeline", "lod"], "No such command 'lod'. Did you mean 'load'?"),
        (["list", "--stat", "paused"], "Possible options: --sort, --state"),
        (["schedule", "--target-topci", "t"], "--target-topic)"),
        (["xyz"], "No such command 'xyz'.\n"),
    ],
)
def test_a_misspelt_command_or_option_is_answered_with_the_one_that_was_meant(arguments: list[str], meant: str) -> None:
    ran = CliRunner().invoke(cli, arguments)
    assert ran.exit_code == 2
    assert meant in ran.stderr
