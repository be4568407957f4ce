"""Output and documents that are shown on a page are what the programs print and read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from support.documented import DRAWINGS, shell_lines, texts
from support.partition import command as record_of
from support.snippets import comparable, unlike

from light_scheduler.bench.document import Document
from light_scheduler.cli import cli, delays
from light_scheduler.delays import DelayLaneStatus, DelayView
from light_scheduler.doctor.kafka_checks import check_rights
from light_scheduler.doctor.worker_checks import check_targets
from light_scheduler.kafka.missing_rights import MissingRight
from light_scheduler.kafka.rights import Right
from light_scheduler.model.lateness import Lateness
from light_scheduler.model.tenant_rules import TenantRules
from light_scheduler.settings import load_settings
from light_scheduler.web.delay_documents import DelayList
from light_scheduler.web.records.change_page import ChangePage
from light_scheduler.web.records.dead_letter_documents import DeadLetterPage
from light_scheduler.wire import decode_history, dialect_named

from .test_blocks import blocks

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


class AtZero:
    def now(self) -> int:
        return 0


def lane_of_delay(partition: int, forwarded: int) -> DelayLaneStatus:
    """Return a lane three records behind, whose next one is due two hours and five minutes after the epoch."""
    return DelayLaneStatus(
        rule="reminder",
        source="carts",
        partition=partition,
        state="running",
        reason=None,
        waiting=False,
        position=forwarded,
        lag=3,
        next_due=2 * HOUR + 5 * MINUTE,
        forwarded=forwarded,
        dead_letters=0,
        expired=0,
        transactions=1,
        restarts=0,
        lateness=Lateness(),
    )


class TestOutput:
    """Blocks of text, and documents that stand alone."""

    @pytest.mark.parametrize("page", DRAWINGS)
    def test_of_a_page_with_a_drawing_is_the_drawing_only(self, page: str) -> None:
        (drawing,) = texts(page)
        assert re.search(r"[│─▶]|\| .* \| .*->", drawing)

    def test_of_a_dry_run_is_what_the_lines_above_lead_to(self, folder: Path) -> None:
        (line,) = [line for line in shell_lines("docs/command-line.md") if line.startswith("light-scheduler dry-run ")]
        (folder / "commands.jsonl").write_text("".join(blocks("docs/command-line.md", "jsonl")), encoding="utf-8")
        ran = CliRunner().invoke(cli, line.split()[1:])
        shown, _ = texts("docs/command-line.md")
        assert ran.exit_code == 1
        assert sorted(comparable(ran.output)) == sorted(comparable(shown))

    def test_of_the_list_of_delays_is_as_it_is_printed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _, expected = texts("docs/command-line.md")
        rule = DelayView(name="reminder", source="carts", delay=DAY, target="carts-left", origin="topic")
        lanes = [lane_of_delay(partition, forwarded) for partition, forwarded in enumerate((500, 500, 500, 242))]
        listed = DelayList(delays=[rule], lanes=lanes, unanswered=[])
        monkeypatch.setattr(delays, "_ask", lambda *_: listed)
        monkeypatch.setattr(delays, "SystemClock", AtZero)
        assert CliRunner().invoke(cli, ["delays", "list"]).stdout == expected

    def test_of_a_command_record_is_one_in_the_native_form(self) -> None:
        (text,) = texts("docs/native.md")
        key, value, *headers = (line[9:] for line in text.splitlines())
        pairs = [tuple(header.split(": ")) for header in headers]
        record = record_of(*((name, of.encode()) for name, of in pairs), key=key.encode(), value=value.encode())
        command = dialect_named("native").decode(record)
        assert command.id == "order-1"

    def test_of_the_doctor_is_what_it_finds(self) -> None:
        (state,) = [block for block in blocks("docs/operating.md", "json") if "unavailable_since" in block]
        shown, variables = texts("docs/operating.md")
        (found,) = check_targets({"targets": json.loads(state)})
        assert found.detail == shown.strip()
        assert set(re.findall(r"^(\w+)=", variables, re.MULTILINE)) == {
            *("LIGHT_SCHEDULER_TRACING", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME")
        }

    def test_of_the_doctor_names_the_right_that_is_missing(self, folder: Path) -> None:
        (shown,) = texts("docs/security.md")
        (folder / "password").write_text("secret")
        options = {"broker": "kafka://kafka-1:9093", "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
        options |= {"sasl_username": "scheduler", "sasl_password_file": "password"}
        settings = load_settings(options, environment={})
        topic = settings.topics.history
        missing = MissingRight(f"no right WRITE on topic {topic}", Right("topic", topic, ("Write",)))
        (found,) = check_rights(settings, [missing])
        finding, _, todo, fix = shown.splitlines()
        assert finding.split("  ") == [found.name, found.status, found.detail]
        assert (todo, fix.strip()) == ("To do:", found.fix)

    def test_of_a_benchmark_is_a_document_of_one(self) -> None:
        (block,) = blocks("docs/benchmarks.md", "json")
        assert set(json.loads(block)) == set(Document.__struct_fields__)

    def test_of_the_audit_trail_is_an_event_of_the_history(self) -> None:
        for block, by in zip(blocks("docs/access.md", "json"), ("shop", "ops"), strict=True):
            event = decode_history(block.encode())
            assert (event.by, event.address) == (by, "192.0.2.7")

    def test_of_the_list_of_changes_has_the_members_of_one(self) -> None:
        (block,) = [block for block in blocks("docs/http.md", "json") if block.startswith('{"changes"')]
        assert unlike(block, msgspec.json.encode(msgspec.json.decode(block, type=ChangePage)).decode()) == []

    def test_of_the_list_of_dead_letters_has_the_members_of_one(self) -> None:
        (block,) = [block for block in blocks("docs/http.md", "json") if block.startswith('{"dead_letters"')]
        assert unlike(block, msgspec.json.encode(msgspec.json.decode(block, type=DeadLetterPage)).decode()) == []

    def test_of_rules_is_what_the_command_shown_sets(self) -> None:
        (block,) = blocks("docs/tenants.md", "json")
        rules = msgspec.json.decode(block, type=TenantRules)
        assert (rules.targets, rules.weight) == (("shop-*",), 3)

    def test_of_dialects_is_read_by_them(self) -> None:
        _, block, _ = blocks("docs/dialects.md", "json")
        command = dialect_named("skyuk").decode(record_of(key=b"id", value=block.encode()))
        assert command.id == "id"
