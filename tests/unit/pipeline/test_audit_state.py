"""What audits leave for the next one: watermarks, and when they do not hold any more."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.audit.changes import Changes
from light_scheduler.pipeline.audit.evidence import _FORMS
from light_scheduler.pipeline.audit.gathering import COLUMNS
from light_scheduler.pipeline.audit.handled import Queue
from light_scheduler.pipeline.audit.watermark import FORMAT, Watermark
from light_scheduler.pipeline.kafka.positions import Position

M = 1_767_225_600_000
IDS = {"orders-commands": "c", "orders-history": "h", "reminders": "t"}
REACHED = {("orders-commands", 0): 10, ("orders-history", 0): 20, ("reminders", 0): 5}
OWN = ("orders-commands", "orders-history")
LAST = Watermark(
    7,
    "orders",
    ("orders-commands",),
    M,
    Position(REACHED, IDS),
    {"orders-history": M - 1},
    {Queue("orders-commands", 0, "shop"): 9},
    Changes({"shop": ((M - 9, M - 5), (M - 1, None))}, {"retry": (("orders-failed", "orders"),)}),
)
GOLDEN = {
    "format": 4,
    "run": 7,
    "app_id": "orders",
    "inputs": ["orders-commands"],
    "end": M,
    "offsets": {"orders-commands": {"0": 10}, "orders-history": {"0": 20}, "reminders": {"0": 5}, "#ids": IDS},
    "whole_since": {"orders-history": M - 1},
    "handled": {"orders-commands": {"0": {"shop": 9}}},
    "stops": {"shop": [[M - 9, M - 5], [M - 1, None]]},
    "routes": {"retry": [["orders-failed", "orders"]]},
}


def test_a_watermark_is_the_documented_document() -> None:
    assert json.loads(LAST.encode()) == GOLDEN
    assert Watermark.decode(json.dumps(GOLDEN)) == LAST


@pytest.mark.parametrize("format", [2, 3])
def test_a_watermark_of_an_older_format_is_read_alike(format: int) -> None:
    assert Watermark.decode(json.dumps(GOLDEN | {"format": format})) == LAST


GOLDEN_1 = {
    "format": 1,
    "run": 7,
    "app_id": "orders",
    "inputs": ["orders-commands"],
    "end": M,
    "offsets": {"orders-commands": {"0": 10}, "orders-history": {"0": 20}, "reminders": {"0": 5}, "#ids": IDS},
    "whole_since": {"orders-history": M - 1},
    "handled": {"orders-commands": {"0": 9}},
}


def test_a_watermark_of_format_1_tells_of_no_tenant_alone_and_knows_of_no_stop_and_no_delay_rule() -> None:
    assert Watermark.decode(json.dumps(GOLDEN_1)) == replace(LAST, handled={}, changes=Changes())


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(JobError, match=f"in format 5; this one reads formats up to {FORMAT}.*another path"):
        Watermark.decode(json.dumps(GOLDEN | {"format": 5}))


def test_the_form_of_evidence_is_that_of_its_format() -> None:
    """Rows of the state outlive the version that wrote them: if this fails, raise FORMAT and take the new digest."""
    _, forms = msgspec.json.schema_components(_FORMS)
    form = json.dumps([COLUMNS, undescribed(forms)], sort_keys=True)
    assert (FORMAT, sha256(form.encode()).hexdigest()[:16]) == (4, "5976d89d9fe25ee9")


def undescribed(forms: Any) -> Any:
    """Return a schema without its texts."""
    if isinstance(forms, list):
        return [undescribed(each) for each in forms]
    if not isinstance(forms, dict):
        return forms
    return {name: undescribed(each) for name, each in forms.items() if name != "description"}


@pytest.mark.parametrize(
    ("different", "reason"),
    [
        ({"app_id": "other"}, "belongs to the application orders, and other is audited"),
        ({"inputs": ["other-commands"]}, "commands topics orders-commands, and this one is of other-commands"),
        ({"end": M}, "ended at 2026-01-01T00:00:00.000Z, and this one would end at 2026-01-01T00:00:00.000Z"),
    ],
)
def test_an_audit_of_something_else_does_not_continue(different: dict[str, Any], reason: str) -> None:
    audit: dict[str, Any] = {"app_id": "orders", "inputs": ["orders-commands"], "end": M + 1}
    LAST.check(**audit)
    with pytest.raises(JobError, match=reason):
        LAST.check(**audit | different)


@pytest.mark.parametrize(
    ("different", "reason"),
    [
        ({"ids": {**IDS, "reminders": "new"}}, "topic reminders was deleted and created again"),
        ({"begins": {("orders-commands", 0): 11}}, "orders-commands that no audit has read: .* offset 10, .* at 11"),
        ({"ends": {("orders-history", 0): 19}}, "topic orders-history ends at offset 19 .* read up to 20"),
    ],
)
def test_topics_that_are_not_what_was_read_are_refused(different: dict[str, Any], reason: str) -> None:
    begins: dict[tuple[str, int], int] = {**REACHED, ("reminders", 0): 99, ("orders-commands", 1): 0}
    logs: dict[str, Any] = {"ids": IDS, "begins": begins, "ends": REACHED}
    LAST.check_logs(OWN, **logs)
    with pytest.raises(JobError, match=reason):
        LAST.check_logs(OWN, **logs | different)


def test_topics_without_ids_are_taken_as_they_are() -> None:
    last = replace(LAST, position=Position(REACHED, {}))
    last.check_logs(OWN, IDS, REACHED, REACHED)
