"""Commands that send: their options are the headers, and what is wrong is said before a broker is asked."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from light_scheduler.cli import cli
from light_scheduler.errors import BrokerError
from light_scheduler.wire.fields import RULES

NOBODY = ("--broker", "kafka://127.0.0.1:9")


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {option.removeprefix("--") for parameter in command.params for option in parameter.opts}


def test_schedule_takes_every_header_of_the_command() -> None:
    of_others = {"command", "firing-id", "attempt", "completion", "reply-topic", "correlation-id"}
    assert RULES.keys() - of_others <= options_of("schedule")


def test_preview_and_reschedule_take_the_time_rules_that_schedule_takes() -> None:
    rule = options_of("schedule") & options_of("reschedule") & options_of("preview")
    assert {"at", "every", "cron", "cron-dialect", "timezone", "backoff", "jitter", "misfire", "on-past"} <= rule


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["schedule"], "Missing option '--target-topic'"),
        (["schedule", "--target-topic", "t", "--cron", "x", "--at", "1"], "--at: 1 looks like seconds"),
        (["schedule", "--target-topic", "t", "--mode", "fixed-rate"], "--mode: needs --every"),
        (["schedule", "--target-topic", "t", "--overlap", "skip"], "--overlap: needs --ack-timeout"),
        (["schedule", "--target-topic", "t", "--payload", "a", "--payload-null"], "a message has one payload"),
        (["schedule", "--target-topic", "t", "--target-key", "a", "--target-key-base64", "YQ=="], "one key"),
        (["schedule", "--target-topic", "t", "--target-key-base64", "?"], "--target-key-base64"),
        (["schedule", "--target-topic", "t", "--header", "schedule-at=1"], "are the scheduler's"),
        (["schedule", "--target-topic", "t", "--priority", "300"], "--priority: '300' is not a whole number"),
        (["reschedule", "a"], "--at: is required, or one of --after, --at, --backoff, --cron, --every"),
        (["reschedule", "a", "--every", "0"], "--every: must be at least 1 ms"),
        (["pause", "a", "--expected-version", "0"], "--expected-version: '0' is not a whole number"),
        (["complete", "a"], "--firing-id: 'a' is not a firing's id"),
        (["trigger", "a", "--tenant", "?"], "--tenant: '?' is not a tenant name"),
        (["cancel"], "Missing argument 'ID', or one of --prefix, --label and --all"),
        (["cancel", "a", "--all"], "ID names one schedule, --prefix, --label and --all many"),
        (["pause", "a", "--prefix", "b"], "give one or the other"),
        (["resume", "order-*"], "ID: one that ends in * stands for many; use --prefix or --all"),
        (["cancel", "--all", "--label", "a=b"], "--all: stands for all schedules of the tenant; leave out --prefix"),
        (["cancel", "--label", "a"], "Invalid value for '--label': 'a' is not a label"),
        (["cancel", "--label", "a=b", "--label", "a=c"], "label 'a' is given twice"),
        (["trigger", "--prefix", "a", "--key", "k"], "--key: has no meaning for many schedules"),
        (["cancel", "--prefix", "a", "--expected-version", "1"], "--expected-version: has no meaning for many"),
        (["reschedule", "--prefix", "a"], "--at: is required, or one of --after"),
        (["reschedule", "--at", "0"], "Missing argument 'ID'"),
    ],
)
def test_a_command_that_cannot_be_right_is_wrong_use(arguments: list[str], error: str) -> None:
    result = CliRunner().invoke(cli, [*arguments, *NOBODY])
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr


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
