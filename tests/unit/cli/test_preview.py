"""`light-scheduler preview`, which asks nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from light_scheduler.cli import cli
from light_scheduler.clock import SystemClock
from light_scheduler.contexts import Contexts, contexts_path, save_contexts

FROM = 1_774_569_600_000
"""2026-03-27T00:00:00Z, a Friday; two days later Europe goes over to summer time."""

MINUTE, HOUR = 60_000, 3_600_000


def preview(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["preview", "--from", "2026-03-27T00:00:00Z", *arguments], standalone_mode=True)


def due_times(*arguments: str) -> list[int]:
    result = preview(*arguments, "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document.keys() == {"next"}
    return [due - FROM for due in document["next"]]


@pytest.mark.parametrize(
    ("arguments", "due"),
    [
        ([], [0]),
        (["--at", "2026-03-27T01:00:00Z"], [HOUR]),
        (["--at", "2026-03-26T23:00:00Z"], [-HOUR]),
        (["--at", "2026-03-27T02:00+01:00"], [HOUR]),
        (["--after", "PT15M"], [15 * MINUTE]),
        (["--every", "1m"], [MINUTE, 2 * MINUTE, 3 * MINUTE]),
        (["--every", "60000ms", "--mode", "fixed-delay"], [MINUTE, 2 * MINUTE, 3 * MINUTE]),
        (["--every", "1m", "--start", str(FROM + 5)], [5, MINUTE + 5, 2 * MINUTE + 5]),
        (["--every", "1m", "--end", str(FROM + MINUTE)], [MINUTE]),
        (["--every", "1m", "--max-firings", "2"], [MINUTE, 2 * MINUTE]),
        (["--cron", "0 9 * * *"], [9 * HOUR, 33 * HOUR, 57 * HOUR]),
        (["--cron", "0 9 * * *", "--timezone", "Europe/Prague"], [8 * HOUR, 32 * HOUR, 55 * HOUR]),
        (
            ["--cron", "0 0 9 ? * 2", "--cron-dialect", "quartz"],
            [81 * HOUR, 249 * HOUR, 417 * HOUR],
        ),
        (["--backoff", "1s,2s,4s"], [1_000, 3_000, 7_000]),
        (["--backoff", "initial=1s factor=3 attempts=2"], [1_000, 4_000]),
    ],
)
def test_the_next_firings_are_told_as_json(arguments: list[str], due: list[int]) -> None:
    assert due_times(*arguments, "--count", "3") == due


def test_jitter_depends_on_whose_schedule_it_is() -> None:
    rule = ("--every", "1h", "--jitter", "10m")
    one, same, other = due_times(*rule, "--id", "a"), due_times(*rule, "--id", "a"), due_times(*rule, "--id", "b")
    assert one == same
    assert one != other
    assert len(one) == 10
    assert all(0 <= due - (number + 1) * HOUR <= 10 * MINUTE for number, due in enumerate(one))


def test_jitter_is_that_of_the_tenant_that_the_environment_or_the_context_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    rule = ("--every", "1h", "--jitter", "10m", "--id", "a")
    of_default, of_shop, of_other = (due_times(*rule, "--tenant", tenant) for tenant in ("default", "shop", "other"))
    assert due_times(*rule) == of_default != of_shop
    save_contexts(
        contexts_path(), Contexts().having("a", {"tenant": "shop"}).having("b", {"tenant": "other"}).using("a")
    )
    assert due_times(*rule) == of_shop
    assert due_times(*rule, "--context", "b") == of_other
    monkeypatch.setenv("LIGHT_SCHEDULER_TENANT", "default")
    assert due_times(*rule) == of_default


def test_headers_of_schedule_that_change_no_time_are_taken() -> None:
    rule = ("--every", "1h", "--count", "2")
    of_target = ("--target-topic", "out", "--target-key", "k", "--target-partition", "3")
    of_delivery = ("--ttl", "5m", "--labels", "team=a", "--priority", "7", "--paused", "--overlap", "skip")
    of_attempts = ("--ack-timeout", "1m", "--max-attempts", "3")
    of_version = ("--on-conflict", "keep")
    assert due_times(*rule, *of_target, *of_delivery, *of_attempts, *of_version) == [HOUR, 2 * HOUR]
    others = ("--target-key-base64", "/w==", "--target-partition-key", "k", "--expected-version", "2")
    assert due_times(*rule, *others) == [HOUR, 2 * HOUR]


def test_the_jitter_of_a_schedule_with_a_key_and_no_id_is_that_of_the_key() -> None:
    rule = ("--every", "1h", "--jitter", "10m")
    assert (
        due_times(*rule, "--key", "a") == due_times(*rule, "--id", "a", "--key", "b") == due_times(*rule, "--id", "a")
    )
    assert due_times(*rule) == due_times(*rule, "--id", "preview")


def test_it_may_begin_with_1970() -> None:
    result = CliRunner().invoke(cli, ["preview", "--from", "0", "--every", "1h", "--count", "2", "--json"])
    assert json.loads(result.stdout) == {"next": [HOUR, 2 * HOUR]}


def test_it_counts_from_now_unless_told_otherwise() -> None:
    before = SystemClock().now()
    result = CliRunner().invoke(cli, ["preview", "--after", "1h", "--json"])
    (due,) = json.loads(result.stdout)["next"]
    assert before <= due - HOUR <= SystemClock().now()


def test_people_get_a_table_with_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = preview("--cron", "0 9 * * 1-5", "--timezone", "Europe/Prague", "--count", "2").stdout.splitlines()
    assert [line.rstrip() for line in lines] == [
        "#  due (UTC)                 due (Europe/Prague)            after",
        "1  2026-03-27T08:00:00.000Z  Fri 2026-03-27 09:00:00 +0100  8h",
        "2  2026-03-30T07:00:00.000Z  Mon 2026-03-30 09:00:00 +0200  3d 7h",
    ]


@pytest.mark.parametrize(
    ("at", "distance"),
    [
        ("2026-03-26T23:00:00Z", "-1h"),
        ("2026-03-25T21:30:00Z", "-1d 2h"),
        ("2026-03-27T00:00:00Z", "0ms"),
        ("2026-03-27T01:00:00Z", "1h"),
    ],
)
def test_the_table_tells_how_long_before_or_after_it_is_accepted_a_schedule_fires(
    monkeypatch: pytest.MonkeyPatch, at: str, distance: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, row = preview("--at", at).stdout.splitlines()
    assert row.split(maxsplit=2)[2].rstrip() == distance


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--cron", "0 9 * * 8"], "--cron: not a unix cron expression: day of week 8 is not in 0-7 (column 9)"),
        (["--cron", "@daily", "--timezone", "Mars"], "--timezone: 'Mars' is not an IANA time zone"),
        (["--timezone", "UTC"], "--timezone: needs --cron"),
        (["--cron", "@daily", "--every", "1m"], "--cron: is given together with --every"),
        (["--every", "soon"], "Invalid value for '--every': 'soon' is not a duration"),
        (["--cron", "0 0 31 2 *"], "--cron: leaves no instant at which"),
        (["--every", "1m", "--end", "2026-03-01T00:00:00Z"], "--end: leaves no instant at which"),
        (["--every", "3650000d"], "--every: first fires after the year 9999"),
        (["--every", "3650000d", "--mode", "fixed-delay"], "--every: first fires after the year 9999"),
        (["--backoff", "3650000d,1s"], "--backoff: first fires after the year 9999"),
        (["--count", "0"], "--count"),
        (["--target-topic", "a b"], "--target-topic: 'a b' is not a topic name"),
        (["--target-partition", "x"], "--target-partition: 'x' is not a whole number"),
        (["--target-key", "a", "--target-key-base64", "YQ=="], "a message has one key"),
        (["--ttl", "soon"], "Invalid value for '--ttl'"),
        (["--overlap", "skip"], "--overlap: needs --ack-timeout"),
        (["--from", "5"], "5 looks like seconds"),
        (["--at", "2026-03-26T23:00:00Z", "--on-past", "reject"], "--at: was 1h in the past"),
    ],
)
def test_what_is_wrong_is_wrong_use_and_names_the_option(arguments: list[str], error: str) -> None:
    result = preview(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr
