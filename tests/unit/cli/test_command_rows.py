"""Rows of a file: the tenant, the id and the key that each of them is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.cli.command_rows import Format, Row, rows_of
from light_scheduler.cli.file_position import LoadedLines

COLUMNS = "id,tenant,after,target-topic\n"


def rows_in(folder: Path, format: Format, text: str) -> list[Row]:
    """Return the rows of a file that is sent with `--tenant shop`."""
    file = folder / f"rows.{format}"
    file.write_text(text, encoding="utf-8")
    with LoadedLines(file) as lines:
        return list(rows_of(lines, format, "shop"))


def tenants_of(rows: list[Row]) -> list[str | None]:
    return [None if row.make is None else row.make(None).tenant for row in rows]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", f"{COLUMNS}a,acme,1h,out\nb,,1h,out\n"),
        (
            "jsonl",
            '{"id": "a", "tenant": "acme", "target": {"topic": "out"}}\n{"id": "b", "target": {"topic": "out"}}\n',
        ),
    ],
)
def test_a_row_is_for_its_own_tenant_or_else_for_the_one_of_the_option(
    tmp_path: Path, format: Format, text: str
) -> None:
    rows = rows_in(tmp_path, format, text)
    assert tenants_of(rows) == ["acme", "shop"]


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", f"{COLUMNS}a,acme,1h,out\nb,no tenant,1h,out\nc,acme,1h,out\n"),
        (
            "jsonl",
            '{"id": "a", "tenant": "acme", "target": {"topic": "out"}}\n'
            '{"id": "b", "tenant": "no tenant", "target": {"topic": "out"}}\n'
            '{"id": "c", "tenant": "acme", "target": {"topic": "out"}}\n',
        ),
    ],
)
def test_a_row_for_what_is_no_tenant_is_refused_by_line_and_field_and_others_are_sent(
    tmp_path: Path, format: Format, text: str
) -> None:
    rows = rows_in(tmp_path, format, text)
    assert tenants_of(rows) == ["acme", None, "acme"]
    (refused,) = [row for row in rows if row.make is None]
    assert (refused.line, refused.field) == (3 if format == "csv" else 2, "tenant")
    assert refused.reason is not None
    assert refused.reason.startswith("'no tenant' is not a tenant name: use 1 to 64 letters")


def identities_of(rows: list[Row]) -> list[tuple[str, bytes]]:
    """Return id and key of each row's record."""
    sent = [row.make(None) for row in rows if row.make is not None]
    return [(command.id, command.key) for command in sent]


@pytest.mark.parametrize("names", ["", '"key":null,', '"key": null, "id": null, ', '"command":null,', '"id":null,'])
def test_each_schedule_without_id_and_key_gets_an_id_of_its_own(tmp_path: Path, names: str) -> None:
    rows = rows_in(tmp_path, "jsonl", f'{{{names}"target":{{"topic":"t"}},"trigger":{{"after":"1h"}}}}\n' * 2)
    first, second = identities_of(rows)
    assert first != second
    assert all(id.encode() == key for id, key in (first, second))


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("csv", "id,after,target-topic\na,1h,\n"),
        ("csv", "id,after\na,1h\n"),
        ("jsonl", '{"id": "a", "trigger": {"after": "1h"}}\n'),
        ("jsonl", '{"id": "a", "trigger": {"after": "1h"}, "target": {"key": "k"}}\n'),
    ],
)
def test_a_row_without_a_target_is_for_the_worker_to_judge(tmp_path: Path, format: Format, text: str) -> None:
    assert tenants_of(rows_in(tmp_path, format, text)) == ["shop"]


@pytest.mark.parametrize("command", ["complete", "extend"])
def test_a_row_about_a_firing_needs_no_id_and_goes_to_the_partition_of_its_schedule(
    tmp_path: Path, command: str
) -> None:
    line = f'{{"command":"{command}","firing_id":"order-1@1767225600000","attempt":1}}\n'
    with_key = line.replace("{", '{"key":"customer-7",', 1)
    rows = rows_in(tmp_path, "jsonl", line + with_key)
    assert identities_of(rows) == [("order-1", b"order-1"), ("order-1", b"customer-7")]


@pytest.mark.parametrize("command", ["cancel", "pause", "resume", "trigger", "reschedule"])
def test_a_row_about_a_schedule_that_it_does_not_name_is_refused(tmp_path: Path, command: str) -> None:
    rule = ',"trigger":{"after":"1h"}' if command == "reschedule" else ""
    (row,) = rows_in(tmp_path, "jsonl", f'{{"command":"{command}"{rule}}}\n')
    assert (row.make, row.field) == (None, "id")
    assert str(row.reason).startswith("is required")
