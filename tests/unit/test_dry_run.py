"""A dry run: what commands in the JSON form would come to."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from light_scheduler import dry_run
from light_scheduler.cli import cli
from light_scheduler.dry_run import Answer, Delivery, DryRun, key_of
from light_scheduler.engine import first_due_times
from light_scheduler.model import Outcome, ScheduleCommand
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.settings import Settings
from light_scheduler.wire import UnsentRecord, json_values
from light_scheduler.wire.json_commands import JSON

START = 1_893_456_000_000
"""2030-01-01T00:00:00Z, a Tuesday."""
HOUR = 3_600_000
DAY = 24 * HOUR

GOOD = {"id": "order-1", "trigger": {"after": "15m"}, "target": {"topic": "reminders"}, "payload": {"text": "pay!"}}


def line(**members: Any) -> bytes:
    return json.dumps({"target": {"topic": "t"}, **members}).encode()


def ran(*lines: bytes, until: int = START + DAY, settings: Settings | None = None) -> tuple[list[Delivery], DryRun]:
    run = DryRun(lines, START, settings)
    return [*run.deliveries(until)], run


def test_what_would_be_delivered_is_told_with_when_and_where() -> None:
    (delivery,), run = ran(json.dumps(GOOD).encode())
    firing = delivery.firing
    assert (delivery.topic, firing.id, firing.key, firing.payload) == ("reminders", "order-1", b"order-1", b"pay!")
    assert firing.due == firing.fired_at == START + HOUR // 4
    assert run.answers == [
        Answer(1, "schedule", "default", "order-1", Outcome.SCHEDULED, version=1, next_due=firing.due)
    ]
    assert run.undelivered == []


def test_commands_change_what_those_before_them_have_scheduled() -> None:
    deliveries, run = ran(
        line(id="a", trigger={"after": "1h"}),
        line(id="a", trigger={"after": "2h"}),
        line(id="b", trigger={"after": "1h"}, key="other"),
        json.dumps({"command": "cancel", "id": "b", "key": "other"}).encode(),
        line(id="c", trigger={"after": "1h"}),
        json.dumps({"command": "pause", "id": "c*"}).encode(),
    )
    assert [(delivery.firing.id, delivery.firing.due - START) for delivery in deliveries] == [("a", 2 * HOUR)]
    assert [answer.outcome for answer in run.answers] == [
        "scheduled",
        "updated",
        "scheduled",
        "cancelled",
        "scheduled",
        "paused",
    ]


@pytest.mark.parametrize(
    ("wrong", "field", "reason"),
    [
        (b'{"id": "x"', None, "is not JSON"),
        (b"[]", None, "must be a JSON object"),
        (b'{"id": "\xff"}', None, "is not JSON"),
        (b'{"id": "x", "payload": {"text": "\xff"}}', None, "is not JSON"),
        (b'{"id": "x", "payload": {"json": [1e999]}}', None, "is not JSON: Number out of range"),
        (b'{"id": "x", "labels": {"a": "' + b"x" * 300 + b'", "b": 1e999}}', None, "is not JSON: Number out of range"),
        (b'{"id": "x", "\xff": 1}', None, "is not JSON"),
        (b'{"id": "\\ud800"}', None, "is not JSON"),
        (b'{"id": 1}', "id", "must be string"),
        (line(id="x", trigger={"cron": "61 * * * *"}), "trigger.cron", "minute 61"),
        (line(id="x", trigger={"cron": "0 9 * * *", "timezone": "Mars"}), "trigger.timezone", "Mars"),
        (line(id="x", target={"topic": "__consumer_offsets"}), "target.topic", "internal topic"),
        (line(id="x", command="explode"), "command", "explode"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number_and_field_and_the_others_are_carried_out(
    wrong: bytes, field: str | None, reason: str
) -> None:
    deliveries, run = ran(line(id="a"), b"", wrong, line(id="b"))
    assert [delivery.firing.id for delivery in deliveries] == ["a", "b"]
    (refused,) = [answer for answer in run.answers if answer.is_refused]
    assert (refused.line, refused.field) == (3, field)
    assert reason in (refused.reason or "")


@pytest.mark.parametrize(
    "trigger",
    [
        {"cron": "0 9 * * 1-5", "timezone": "Europe/Prague"},
        {"every": "7h", "jitter": "10m"},
        {"backoff": "1h,2h,4h"},
        {"at": START + 5},
    ],
    ids=lambda trigger: next(iter(trigger)),
)
def test_a_dry_run_delivers_when_a_preview_says(trigger: dict[str, Any]) -> None:
    command = line(command="schedule", id="a", trigger=trigger)
    deliveries, _ = ran(command, until=START + 30 * DAY)
    previewed = JSON.decode(UnsentRecord(None, command, (), START))
    assert isinstance(previewed, ScheduleCommand)
    expected = [due for due in islice(first_due_times(previewed), 200) if due <= START + 30 * DAY]
    assert [delivery.firing.due for delivery in deliveries] == expected != []


def test_a_line_may_ask_for_an_answer_of_its_own() -> None:
    _, run = ran(line(id="a", reply_topic="mine", correlation_id="c"))
    assert [answer.outcome for answer in run.answers] == ["scheduled"]


@pytest.mark.parametrize(
    ("reply", "field", "reason"),
    [
        ({"correlation_id": "c"}, "correlation_id", "needs reply_topic"),
        ({"reply_partition": 0}, "reply_partition", "needs reply_topic"),
        ({"reply_topic": None, "correlation_id": "c"}, "correlation_id", "needs reply_topic"),
        ({"reply_topic": "mine", "correlation_id": 5}, "correlation_id", "must be string"),
        ({"reply_topic": "mine", "reply_partition": -1}, "reply_partition", "'-1'"),
        ({"reply_topic": "not a topic"}, "reply_topic", "'not a topic'"),
        ({"reply_topic": "light-scheduler-history"}, "reply_topic", "internal topic"),
    ],
)
@pytest.mark.parametrize(
    "more", [{}, {"command": "cancel", "target": None}, {"command": "pause", "id": "a*", "target": None}]
)
def test_a_line_that_asks_for_an_answer_that_workers_cannot_give_is_refused(
    reply: dict[str, Any], field: str, reason: str, more: dict[str, Any]
) -> None:
    deliveries, run = ran(line(**{"id": "a", "tenant": "shop"} | reply | more), line(id="b", reply_topic=None))
    assert [delivery.firing.id for delivery in deliveries] == ["b"]
    refused, accepted = run.answers
    named = Answer(1, more.get("command", "schedule"), "shop", more.get("id", "a"), Outcome.REJECTED, field=field)
    assert msgspec.structs.replace(refused, reason=None) == named
    assert reason in (refused.reason or "")
    assert accepted.outcome == "scheduled"


def test_a_line_with_another_fault_too_is_refused_for_one_of_them() -> None:
    _, run = ran(line(id="a", trigger={"every": "0s"}, correlation_id="c"))
    assert [(answer.line, answer.outcome) for answer in run.answers] == [(1, "rejected")]


def test_a_schedule_may_aim_at_the_results_topic() -> None:
    (delivery,), run = ran(line(id="a", target={"topic": "light-scheduler-results"}))
    assert delivery.topic == "light-scheduler-results"
    assert [answer.outcome for answer in run.answers] == ["scheduled"]


@pytest.mark.parametrize("correlation_id", ["abc", "1", ":1", None])
def test_the_answer_to_a_command_that_a_schedule_delivers_is_none_to_a_line(correlation_id: str | None) -> None:
    topics = Settings().topics
    command = {"command": "cancel", "id": "x", "reply_topic": topics.results, "correlation_id": correlation_id}
    delivering = line(id="a", trigger={"after": "1h"}, target={"topic": topics.commands}, payload={"json": command})
    deliveries, run = ran(delivering, line(id="b", trigger={"after": "2h"}))
    assert [delivery.firing.id for delivery in deliveries] == ["a", "b"]
    assert [(answer.line, answer.id, answer.outcome) for answer in run.answers] == [
        (1, "a", "scheduled"),
        (2, "b", "scheduled"),
    ]


def test_what_becomes_a_dead_letter_is_told() -> None:
    deliveries, run = ran(line(id="a", trigger={"after": "1h"}, ack_timeout="1h", max_attempts=2))
    assert [delivery.firing.attempt for delivery in deliveries] == [1, 2]
    assert [(letter.id, letter.cause) for letter in run.undelivered] == [("a", "unacknowledged")]


def test_settings_of_the_workers_hold() -> None:
    _, run = ran(line(id="a", payload={"text": "four"}), settings=Settings(max_payload_bytes=3))
    assert [answer.field for answer in run.answers if answer.is_refused] == ["payload"]


def test_a_line_without_a_tenant_is_for_the_one_that_is_given() -> None:
    lines = line(id="a"), line(id="b", tenant="other"), line(id="c", tenant=None)
    run = DryRun(lines, START, tenant="shop")
    assert [delivery.firing.tenant for delivery in run.deliveries(START)] == ["shop", "other", "shop"]


def test_only_tenants_that_are_named_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's loop waits while a dry run begins, and there may be tens of thousands of tenants."""
    reduced: list[str] = []

    def noted(tenant: Tenant, of_single_commands: Any = dry_run._of_single_commands) -> Tenant:
        reduced.append(tenant.name)
        return of_single_commands(tenant)  # type: ignore[no-any-return]

    monkeypatch.setattr(dry_run, "_of_single_commands", noted)
    rules = TenantRules(targets=("t",), max_pending=1, commands_per_second=1)
    paused = (Tenant(name=f"shop-{number}", rules=rules, state=TenantState.PAUSED) for number in range(1_000))
    deleted = Tenant(name="deleted", state=TenantState.DELETED)
    run = DryRun(
        [
            line(id="a", tenant="shop-7", trigger={"every": "1h"}),
            line(id="b", tenant="shop-7", target={"topic": "u"}),
            line(id="c", tenant="deleted"),
            line(id="d", tenant="other"),
        ],
        START,
        tenants=TenantBook([*paused, deleted]),
    )
    assert [delivery.firing.id for delivery in run.deliveries(START + HOUR)] == ["d", "a"]
    assert [answer.field for answer in run.answers] == [None, "target.topic", "tenant", None]
    assert reduced == ["shop-7", "deleted"]


def test_the_room_of_partitions_is_left_out() -> None:
    """A dry run has one partition, and nothing else is pending there."""
    _, run = ran(line(id="a"), line(id="b"), settings=Settings(max_pending_per_partition=1))
    assert not [answer for answer in run.answers if answer.is_refused]


@pytest.mark.soak
def test_no_more_is_computed_than_is_read() -> None:
    run = DryRun([line(id="a", trigger={"every": "1ms"})], START)
    assert len([*islice(run.deliveries(START + 365 * DAY), 2_000)]) == 2_000


class TestCommandLine:
    def invoke(self, path: Path, *arguments: str) -> Result:
        fixed = ["--from", "2030-01-01T00:00:00Z", "--until", "2030-01-02T00:00:00Z"]
        return CliRunner().invoke(cli, ["dry-run", "--from-file", str(path), *fixed, *arguments])

    @pytest.fixture
    def good(self, tmp_path: Path) -> Path:
        path = tmp_path / "good.jsonl"
        path.write_bytes(json.dumps(GOOD).encode() + b"\n" + line(id="hourly", trigger={"every": "6h"}) + b"\n")
        return path

    def test_a_table_has_a_row_for_each_message(self, good: Path) -> None:
        result = self.invoke(good)
        assert result.exit_code == 0, result.output
        rows = [row.split() for row in result.stdout.splitlines()[1:]]
        assert rows[0] == ["2030-01-01T00:15:00.000Z", "default/order-1", "reminders", "order-1", "1", "1", "4"]
        assert [row[0] for row in rows[1:]] == [
            f"2030-01-{day}:00:00.000Z" for day in ("01T06", "01T12", "01T18", "02T00")
        ]

    def test_json_has_all_of_it(self, good: Path) -> None:
        document = json.loads(self.invoke(good, "--json").stdout)
        assert document["deliveries"][0] == {
            "at": START + HOUR // 4,
            "due": START + HOUR // 4,
            "tenant": "default",
            "id": "order-1",
            "topic": "reminders",
            "key": {"text": "order-1"},
            "sequence": 1,
            "attempt": 1,
            "payload": {"text": "pay!"},
            "headers": [],
        }
        assert [answer["outcome"] for answer in document["answers"]] == ["scheduled", "scheduled"]
        assert (document["undelivered"], document["complete"]) == ([], True)

    def test_a_refused_command_is_named_by_line_and_field_and_ends_with_1(self, good: Path) -> None:
        with good.open("ab") as file:
            file.write(line(id="x", trigger={"cron": "61 * * * *"}))
        result = self.invoke(good)
        assert result.exit_code == 1
        assert len(result.stdout.splitlines()) == 6
        assert result.stderr.startswith("line 3: rejected: default/x: trigger.cron: not a unix cron expression")

    def test_a_limit_is_told(self, good: Path) -> None:
        result = self.invoke(good, "--limit", "2")
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3)
        assert "--limit" in result.stderr
        assert json.loads(self.invoke(good, "--limit", "2", "--json").stdout)["complete"] is False
        assert json.loads(self.invoke(good, "--limit", "5", "--json").stdout)["complete"] is True

    def test_it_ends_a_day_after_its_start_unless_it_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "commands.jsonl"
        path.write_bytes(line(id="a", trigger={"every": "8h"}))
        arguments = ["dry-run", "--from-file", str(path), "--from", "2030-01-01T00:00:00Z", "--json"]
        document = json.loads(CliRunner().invoke(cli, arguments).stdout)
        assert [each["due"] for each in document["deliveries"]] == [START + hour * HOUR for hour in (8, 16, 24)]
        assert document["complete"] is True

    @pytest.mark.parametrize(
        "arguments", [["--until", "2029-01-01T00:00:00Z"], ["--until", "soon"], ["--limit", "0"]], ids=" ".join
    )
    def test_wrong_use_ends_with_2(self, good: Path, arguments: list[str]) -> None:
        result = self.invoke(good, *arguments)
        assert result.exit_code == 2
        assert arguments[0] in result.stderr

    def test_a_line_without_a_tenant_is_for_that_of_the_option_or_else_of_the_environment(
        self, good: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def tenants(*arguments: str) -> set[str]:
            document = json.loads(self.invoke(good, "--json", *arguments).stdout)
            return {delivery["tenant"] for delivery in document["deliveries"]}

        monkeypatch.setenv("LIGHT_SCHEDULER_TENANT", "shop")
        assert tenants() == {"shop"}
        assert tenants("--tenant", "other") == {"other"}

    def test_a_file_that_is_not_there_is_wrong_use(self, tmp_path: Path) -> None:
        assert self.invoke(tmp_path / "none.jsonl").exit_code == 2

    def test_a_byte_order_mark_is_no_part_of_the_first_line_as_where_the_file_is_sent(self, good: Path) -> None:
        good.write_bytes(b"\xef\xbb\xbf" + good.read_bytes())
        result = self.invoke(good)
        assert (result.exit_code, len(result.stdout.splitlines()), result.stderr) == (0, 6, "")

    def test_a_file_of_csv_is_wrong_use_and_says_which_format_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "schedules.csv"
        path.write_text("id,after,target-topic\na,1h,t\n")
        result = self.invoke(path)
        assert result.exit_code == 2
        assert "schedules.csv is CSV: give JSON Lines" in " ".join(result.stderr.split())


def test_a_member_that_is_passed_on_is_not_decoded_for_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(value: bytes | msgspec.Raw) -> None:
        assert len(bytes(value)) < 300

    monkeypatch.setattr(json_values, "read", small)
    for key, given in (("entity", {"key": "entity", "id": "a"}), ("a", {"id": "a", "key": None})):
        assert key_of(line(**given, payload={"json": ["x"] * 1_000})) == key.encode()
    assert key_of(line(key=["a"] * 1_000)) is None
